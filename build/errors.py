"""Errors of build steps: failures for the author of the crew, and infrastructure errors.

Raised throughout this package; build.__main__ turns them into a termination message and an exit code.
"""

from plan.errors import PlanError

GIT_AUTH_FAILED = "GitAuthFailed"
GIT_NOT_FOUND = "GitNotFound"
VERIFICATION_FAILED = "VerificationFailed"
CONTEXT_TOO_LARGE = "ContextTooLarge"
CONTEXT_INVALID = "ContextInvalid"
REGISTRY_PUSH = "RegistryPush"


class BuildRefused(PlanError):
    """A permanent failure for the author, about the source's transport or form, not its content."""


class InfrastructureError(Exception):
    """Something around the build is unavailable or broken; a retry may succeed.

    `reason` is the deployment's reason where all retries fail; if empty, the controller chooses one.
    """

    reason = ""


class RegistryError(InfrastructureError):
    """The registry is unavailable, full or broken."""

    reason = REGISTRY_PUSH


def require_image_size(size: int, max_bytes: int) -> None:
    """Raise BuildRefused if an image of `size` bytes, compressed, exceeds `max_bytes`, unless that is 0."""
    if 0 < max_bytes < size:
        raise BuildRefused(
            REGISTRY_PUSH,
            f"the image has {size} bytes, more than {max_bytes}",
            "Use fewer or smaller dependencies. The limit is image_bytes of the installation or of the plan.",
        )


def is_temporary(status: int) -> bool:
    """Return whether a server that answers with this status may answer otherwise later."""
    return status >= 500 or status in (408, 425, 429)
