"""Errors of the customer API in one shape, and the two doors that say whether the service lives."""
