"""Environment variables of a project under `/v1`."""
