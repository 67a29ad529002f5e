"""API keys under `/v1`."""
