"""Namespaces of teams."""
