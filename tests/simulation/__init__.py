"""The whole engine in one process: real PostgreSQL, virtual time, and a seeded adversary at every await."""
