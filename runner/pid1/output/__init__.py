"""Output of the crew: pipes, lines, secret masking, and the event queue."""
