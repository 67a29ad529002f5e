"""What the actions `deploy` and `run` are made of: standard library only, imports nothing of the service."""
