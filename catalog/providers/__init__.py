"""Providers' protocols: translation and HTTP, nothing that decides. One file each; see `registry`."""
