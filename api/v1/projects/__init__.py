"""Projects under `/v1`."""
