"""Deployments and their build logs under `/v1`."""
