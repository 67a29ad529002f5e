"""Crewyard on an existing cluster: the one of kubectl's current context."""
