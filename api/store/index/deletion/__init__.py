"""Deletion of records: expired records, deployments, projects, and their tombstones."""
