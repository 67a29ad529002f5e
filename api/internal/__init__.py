"""The calls of run pods and build pods (docs/protocol.md)."""
