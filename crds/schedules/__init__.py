"""Schedules of Projects: times at which runs start automatically."""
