"""Listeners with bounded connections. Used by the API server and the controller."""
