"""Measurements at scale on hollow nodes (nodes without a machine, played by kwok)."""
