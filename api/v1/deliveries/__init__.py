"""Deliveries of a project's notifications under `/v1`."""
