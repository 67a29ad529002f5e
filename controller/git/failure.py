"""Git failures as messages for the owner of the Project: reason, observation, next step.

Pure. Called by `controller.git.client`, `controller.git.remote` and the child processes.
"""

import re
from collections.abc import Mapping

from controller.git.repository import GitProblem, Remote, RemoteHead
from egress.git.errors import GitErrorKind, GitFailure, keyscan_command
from egress.git.repository_url import PORTS, display_url, parse, printable

MAX_LISTING_BYTES = 16 << 20
"""Maximum list of branches and tags: more than 200,000 of them."""
_SECRET = "the Secret of spec.source.git.secretRef"
_COMMIT = re.compile(r"[0-9a-f]{40}")


def problem_of(failure: GitFailure, remote: Remote, seconds: float) -> GitProblem:
    """Return the problem of a failed connection to a remote. Pure."""
    host, url = remote.host, display_url(remote.url)
    match failure.kind:
        case GitErrorKind.TIMEOUT:
            return too_slow(remote, seconds)
        case GitErrorKind.ADDRESS_REFUSED:
            hint = "use another address, or ask the operator to add it to CREWYARD_NET_ALLOW"
            return GitProblem("AddressRefused", f"{printable(failure.detail)}; {hint}")
        case GitErrorKind.CERTIFICATE:
            hint = f"put its issuer into ca.crt of {_SECRET}"
            return GitProblem("CertificateInvalid", f"the certificate of {printable(failure.detail)}; {hint}")
        case GitErrorKind.HOST_KEY_UNKNOWN | GitErrorKind.HOST_KEY_CHANGED:
            return _host_key(failure, remote)
        case GitErrorKind.HOST_NOT_FOUND:
            return GitProblem("GitNotFound", f"host {host} does not exist; correct spec.source.git.url")
        case GitErrorKind.IDENTITY:
            hint = f"put an ed25519, rsa or ecdsa key without a passphrase into identity of {_SECRET}"
            return GitProblem("GitAuthFailed", f"the key for {host} cannot be read; {hint}")
        case GitErrorKind.AUTH:
            return _auth(remote)
        case GitErrorKind.REPOSITORY_NOT_FOUND:
            return GitProblem("GitNotFound", f"no repository at {url}; correct spec.source.git.url")
        case GitErrorKind.NOT_GIT:
            message = f"{url} is not a git repository, or is a shallow clone; correct spec.source.git.url"
            return GitProblem("GitNotFound", message)
        case GitErrorKind.COMMIT_NOT_FOUND:
            return GitProblem(
                "Unreachable", f"{host} no longer has the commit it listed; will retry", transient=True
            )
        case GitErrorKind.SHA256:
            hint = "use a sha1 repository (commit ids of 40 digits)"
            return GitProblem(
                "UnsupportedRepository", f"{url} is a sha256 repository, which is not supported; {hint}"
            )
    return GitProblem("Unreachable", f"{host} could not be read; will retry", transient=True)


def too_slow(remote: Remote, seconds: float) -> GitProblem:
    """Return the problem of a remote that timed out."""
    message = f"{remote.host} did not respond within {seconds:.0f} s; will retry"
    return GitProblem("Unreachable", message, transient=True)


def too_large(max_bytes: int) -> GitProblem:
    """Return the problem of a commit that exceeds `max_bytes` or the limits for unpacking."""
    size = f"{max_bytes >> 20} MiB" if max_bytes % (1 << 20) == 0 else f"{max_bytes} bytes"
    return GitProblem(
        "RepositoryTooLarge",
        f"one commit has more than {size}, or unpacks to more than is allowed; keep large files out of the "
        "repository",
    )


def too_many() -> GitProblem:
    """Return the problem of a repository that lists too many references."""
    return GitProblem(
        "TooManyRefs",
        f"the list of the repository's branches and tags has more than {MAX_LISTING_BYTES >> 20} MiB; "
        "delete those that are not needed, or name a repository with fewer",
    )


def no_commit(remote: Remote, head: RemoteHead) -> GitProblem:
    """Return the problem of a commit that is missing, or that the server does not serve by id."""
    if head.name != head.commit:
        message = f"{printable(head.name)} moved while it was read; will retry"
        return GitProblem("Unreachable", message, transient=True)
    return GitProblem(
        "GitNotFound",
        f"{display_url(remote.url)} has no commit {head.commit}, or does not serve it by id: it was never "
        "pushed, or was removed by a forced push; push it, or correct spec.source.git.ref",
    )


def check(remote: Remote, ref: Mapping[str, str]) -> None:
    """Check URL and `ref`; the CRD validates most of it too. Raises GitProblem. Pure."""
    try:
        parse(remote.url)
    except ValueError as error:
        scheme = remote.url.partition("://")[0]
        reason = "InvalidUrl" if scheme in PORTS else "UnsupportedScheme"
        raise GitProblem(reason, f"{error}; change spec.source.git.url") from None
    commit = ref.get("commit", "0" * 40)
    if len(commit) == 64:
        raise GitProblem(
            "UnsupportedRepository", "a commit id has 40 digits; sha256 repositories are not supported"
        )
    if not _COMMIT.fullmatch(commit):
        raise GitProblem(
            "GitNotFound", "spec.source.git.ref.commit is not a commit id of 40 hexadecimal digits"
        )


def _host_key(failure: GitFailure, remote: Remote) -> GitProblem:
    changed = failure.kind is GitErrorKind.HOST_KEY_CHANGED
    reason = "HostKeyMismatch" if changed else "HostKeyUnknown"
    relation = "which is not the one in" if changed else "and there is none in"
    return GitProblem(
        reason,
        f"{remote.host} presented the host key {failure.detail}, {relation} known_hosts of {_SECRET}; "
        f"compare it with the key that its operator publishes, then put the "
        f"output of `{keyscan_command(remote.url)}` there",
    )


def _auth(remote: Remote) -> GitProblem:
    if remote.ssh:
        hint = (
            "register its public half there"
            if remote.identity
            else f"put a private key into identity of {_SECRET}"
        )
    elif remote.access.authenticates:
        hint = f"check {_SECRET}"
    else:
        hint = (
            "check that the repository exists; if it is private, name a Secret with username and password in "
            "spec.source.git.secretRef"
        )
    problem = "did not take the key" if remote.ssh and remote.identity else "refused access to the repository"
    return GitProblem("GitAuthFailed", f"{remote.host} {problem}; {hint}")
