"""Shared code of the actions `deploy` and `run`: standard library only, no imports from the service."""
