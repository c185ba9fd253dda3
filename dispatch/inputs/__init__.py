"""Customers' own files: received, kept once, named in requests, and made reachable for a provider."""
