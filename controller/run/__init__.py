"""Runs: accepted, admitted, one pod each, and exactly one end."""
