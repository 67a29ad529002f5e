"""The audit log of the API."""
