"""Connections to addresses that strangers name, checked and pinned in one moment. For api, build and git."""
