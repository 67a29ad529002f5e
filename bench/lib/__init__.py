"""Shared parts of the measurements: statistics, goals, results, the installation under test."""
