"""What the ground raises when a person has to act.

Raised everywhere below `dev`, printed by `dev.__main__` without a traceback.
"""


class GroundError(Exception):
    """Something is in the way. The message names it and the next step."""
