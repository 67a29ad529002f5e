"""The `/v1` API, one folder per resource."""
