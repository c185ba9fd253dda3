"""The door that providers call."""
