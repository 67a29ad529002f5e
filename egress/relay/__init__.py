"""Loopback relays that check every outbound connection: HTTP and SSH."""
