"""`/v1` resource: API keys."""
