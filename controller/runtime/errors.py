"""Errors of reconciles, by how to handle them. Caught by `controller.runtime.worker`."""

from kube import errors


class Retry(Exception):
    """Temporary condition; the queue retries the key with back-off and logs no error."""


def is_expected(error: Exception) -> bool:
    """Return whether a retry is the ordinary response; log no stack trace then."""
    return isinstance(error, Retry | errors.KubeConflict | errors.KubeUnavailable | errors.AlreadyExists)
