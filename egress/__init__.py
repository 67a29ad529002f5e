"""SSRF-safe outbound connections: each address is checked and pinned. Used by api, build and git."""
