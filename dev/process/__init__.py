"""Processes and commands of the dev cluster: start, probe, stop."""
