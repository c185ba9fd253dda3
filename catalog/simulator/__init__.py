"""Providers, simulated over real HTTP: for the demo, for tests, and for trying what providers rarely do."""
