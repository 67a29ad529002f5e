"""Schedules of Projects: Runs created at their times."""
