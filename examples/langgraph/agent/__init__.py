"""A crew that plans questions about a text, looks the answers up and writes a report."""
