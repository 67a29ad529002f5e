"""Callers without a key of ours: Kubernetes tokens, and the tokens of GitHub's workflows."""
