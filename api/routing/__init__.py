"""Endpoints and the middleware that runs around each request."""
