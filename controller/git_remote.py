"""pygit2 on one remote: through the gate, with its credentials, and what its errors mean.

Called by `controller.git` for listings, and by `controller.git_child` for fetches.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import pygit2

from controller.repository import GitProblem, Remote, meaning
from outbound.addresses import Rules
from outbound.gate import Gate

T = TypeVar("T")
CONNECT_SECONDS = 10
SILENCE_SECONDS = 30
MAX_BYTES = 100 << 20
"""Of one look at a remote."""


def gated(remote: Remote, rules: Rules, seconds: float, work: Callable[[Gate], T]) -> T:
    """What `work` gives on a gate that is open for `seconds`. Raises GitProblem."""
    pygit2.settings.server_connect_timeout = CONNECT_SECONDS * 1000
    pygit2.settings.server_timeout = SILENCE_SECONDS * 1000
    with Gate(
        rules,
        connect_timeout=CONNECT_SECONDS,
        idle_timeout=SILENCE_SECONDS,
        total_timeout=seconds,
        most=MAX_BYTES,
        ca=remote.ca,
        home=remote.url,
    ) as gate:
        try:
            return work(gate)
        except (pygit2.GitError, KeyError, ValueError, OSError) as error:
            raise _problem(error, remote, seconds, gate) from error


def _problem(error: Exception, remote: Remote, seconds: float, gate: Gate) -> GitProblem:
    if gate.exceeded:
        return GitProblem("RepositoryTooLarge", f"one commit has more than {MAX_BYTES >> 20} MiB")
    if gate.refusals:
        return GitProblem(
            "AddressRefused", f"{gate.refusals[0]}; the installation's CREWYARD_NET_ALLOW can name it"
        )
    if gate.untrusted:
        return GitProblem(
            "CertificateInvalid",
            f"the certificate of {gate.untrusted[0]}; put its issuer into ca.crt of the Secret",
        )
    if gate.deadline.over:
        return too_slow(remote, seconds)
    return meaning(str(error), remote, bool(gate.unknown))


def too_slow(remote: Remote, seconds: float) -> GitProblem:
    """The problem of a remote that took too long."""
    message = f"{remote.host} did not answer within {seconds:.0f} s"
    return GitProblem("Unreachable", message, passing=True)


def callbacks(remote: Remote) -> pygit2.RemoteCallbacks:
    """The credentials of a remote, given once: the same answer to a second question would be a loop."""

    class Callbacks(pygit2.RemoteCallbacks):  # type: ignore[misc,unused-ignore]
        asked = False

        def credentials(self, url: str, username_from_url: str | None, allowed_types: Any) -> Any:
            if self.asked or not (remote.username or remote.password):
                raise ValueError("authentication is required")
            self.asked = True
            return pygit2.UserPass(remote.username, remote.password)

        def custom_headers(self) -> list[str] | None:
            return [f"Authorization: Bearer {remote.bearer}"] if remote.bearer else None

    return Callbacks()
