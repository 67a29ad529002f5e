"""What the package is for; it is never built."""


def kickoff(inputs):
    """Does nothing."""
    return inputs
