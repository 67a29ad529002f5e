"""The API server: /v1 for clients, /internal/v1 for pods, the index and its maintenance."""
