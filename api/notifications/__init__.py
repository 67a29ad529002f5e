"""Delivery of notifications to their receivers."""
