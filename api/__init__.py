"""The facade: /v1 for clients, the calls of pods, and the index that answers them."""
