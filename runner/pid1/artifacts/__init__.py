"""Artifacts of the crew: scan, upload, transfer."""
