"""Wheels of a private package index, downloaded by a confined pip."""
