"""The internal API of run pods and build pods (docs/protocol.md)."""
