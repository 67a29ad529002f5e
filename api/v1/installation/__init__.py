"""The state of the installation under `/v1`."""
