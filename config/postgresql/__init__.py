"""The database as Django speaks with it, without a question before each request."""
