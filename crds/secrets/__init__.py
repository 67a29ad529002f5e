"""Secrets that Projects name: who may use them."""
