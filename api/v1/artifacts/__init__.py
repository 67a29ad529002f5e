"""Artifacts of a run under `/v1`."""
