"""A crew that plans questions on a topic, looks up the answers and writes a report."""
