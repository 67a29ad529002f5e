"""Requests to servers that the installation or a project names."""
