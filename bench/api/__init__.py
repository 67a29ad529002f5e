"""Measurements of the HTTP API: requests, lists, event streams, the console."""
