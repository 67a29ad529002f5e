"""Tests, and the servers they start."""
