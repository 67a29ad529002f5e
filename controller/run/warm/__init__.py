"""Warm starts: pods that are started before their run, and wait for one."""
