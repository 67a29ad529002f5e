"""Smoke run: the run of a new deployment that must succeed before it becomes active."""
