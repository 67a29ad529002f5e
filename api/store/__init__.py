"""Stored data of the API server: the index, event logs, build logs and blobs."""
