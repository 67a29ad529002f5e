"""Warm builders: pods that are started before their build, and wait for one."""
