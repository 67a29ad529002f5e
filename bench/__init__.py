"""Measurements of a running installation, each against its peer in the same run (`make bench`)."""
