"""Pure routing: frozen facts in, a decision with its whole evidence out."""
