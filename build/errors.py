"""How a build step ends badly: with an answer for the author, or with trouble of the installation.

Raised all over this package, turned into a termination message and an exit code by build.__main__.
"""

from plan.errors import PlanError

GIT_AUTH_FAILED = "GitAuthFailed"
GIT_NOT_FOUND = "GitNotFound"
CONTEXT_TOO_LARGE = "ContextTooLarge"
CONTEXT_INVALID = "ContextInvalid"
REGISTRY_PUSH = "RegistryPush"


class Refused(PlanError):
    """An answer like PlanError, about the source's transport or its form rather than its content."""


class Infrastructure(Exception):
    """Something around the build is away or broken; the same build may work later.

    `reason` is what the deployment fails with where it does not; empty, the controller chooses.
    """

    reason = ""


class RegistryTrouble(Infrastructure):
    """The registry is away, full or broken."""

    reason = REGISTRY_PUSH
