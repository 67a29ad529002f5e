"""The audit log: one row for each change that a caller of the API makes, chained by hashes."""
