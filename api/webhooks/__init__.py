"""Webhooks of git hosts: signature check, parsing and outcome."""
