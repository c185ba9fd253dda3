"""One face per provider: its paths, its documents, its errors."""
