"""Server-Sent Events: fan-out of run events, open connections and encoding."""
