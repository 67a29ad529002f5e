"""Endpoints and the request middleware."""
