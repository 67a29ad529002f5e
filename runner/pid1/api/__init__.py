"""HTTP client of process 1 for the internal API."""
