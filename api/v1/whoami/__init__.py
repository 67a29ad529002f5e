"""The caller under `/v1`."""
