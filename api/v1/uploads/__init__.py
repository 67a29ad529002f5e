"""Uploads of source archives under `/v1`."""
