"""From a provider's temporary address to a proved file in our own storage; see docs/outputs.md."""
