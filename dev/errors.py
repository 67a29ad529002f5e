"""What the ground raises when a person has to act.

Raised everywhere below `dev`, printed by `dev.__main__` without a traceback.
"""


class DevClusterError(Exception):
    """Something is in the way. The message names it and the next step; `code` is the process's exit code."""

    code = 1


class OperationRefused(DevClusterError):
    """Nothing is wrong, but it is not done without a person's word. Nothing was changed."""

    code = 2
