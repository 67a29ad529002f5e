"""Schedules of a project under `/v1`."""
