"""Embedded cluster: one Kubernetes node from Go modules and Debian packages."""
