"""What a reconcile can fail with, by what is to be done about it. Caught by `controller.runtime.worker`."""

from kube import errors


class Retry(Exception):
    """Something that is expected to pass by itself; the key comes again with back-off, quietly."""


def is_expected(error: Exception) -> bool:
    """Whether trying again is the ordinary answer: no stack trace is worth logging."""
    return isinstance(error, Retry | errors.Conflict | errors.Unavailable | errors.AlreadyExists)
