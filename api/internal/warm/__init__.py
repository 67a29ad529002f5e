"""Pods that were started before their run: they wait here for one."""
