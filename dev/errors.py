"""Errors that need action by a person.

Raised everywhere in `dev`; `dev.__main__` prints them without a traceback.
"""


class DevClusterError(Exception):
    """An error whose message names the problem and the next step; `code` is the exit code."""

    code = 1


class OperationRefused(DevClusterError):
    """The command needs confirmation or another cluster. Nothing was changed."""

    code = 2
