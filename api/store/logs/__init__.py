"""Event logs and build logs: journals in files or PostgreSQL, archives of ended runs."""
