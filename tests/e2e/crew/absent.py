"""A module that cannot be imported."""

import no_such_module_anywhere


def kickoff(inputs):
    """Is never reached."""
    return no_such_module_anywhere
