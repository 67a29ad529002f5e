"""Runs, their events and logs under `/v1`."""
