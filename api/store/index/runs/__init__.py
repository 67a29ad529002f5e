"""Runs as rows: inserts, updates from Run objects, lists, counts, inputs."""
