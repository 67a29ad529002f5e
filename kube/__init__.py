"""Kubernetes client shared by API server and controller."""
