"""Artifacts of the crew: scan of the directory, transfer of a file, parallel upload."""
