"""Loopback relays that check each outbound connection: HTTP and SSH."""
