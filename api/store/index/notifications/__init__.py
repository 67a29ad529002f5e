"""Notifications: events that are recorded for the receivers of a project, and their deliveries."""
