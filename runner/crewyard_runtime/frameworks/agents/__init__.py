"""Frameworks of agents that take a prompt: their calls and events, a module each."""
