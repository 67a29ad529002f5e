"""What goes wrong with a repository, told to the owner of the Project: reason, what was seen, next step.

Pure. Called by `controller.git.client`, `controller.git.remote` and the child processes.
"""

import re
from collections.abc import Mapping

from controller.git.repository import GitProblem, Head, Remote
from egress.git.errors import Kind, Trouble, keyscan
from egress.git.repository_url import PORTS, harmless, parse, shown

MAX_LISTING = 16 << 20
"""Bytes of one list of branches and tags: more than 200,000 of them."""
_SECRET = "the Secret of spec.source.git.secretRef"
_COMMIT = re.compile(r"[0-9a-f]{40}")


def meaning(trouble: Trouble, remote: Remote, seconds: float) -> GitProblem:
    """What went wrong on the way to a remote, told to the owner of the Project. Pure."""
    host, url = remote.host, shown(remote.url)
    match trouble.kind:
        case Kind.LATE:
            return too_slow(remote, seconds)
        case Kind.ADDRESS:
            hint = "use another address, or ask an administrator to name it in CREWYARD_NET_ALLOW"
            return GitProblem("AddressRefused", f"{harmless(trouble.detail)}; {hint}")
        case Kind.CERTIFICATE:
            hint = f"put its issuer into ca.crt of {_SECRET}"
            return GitProblem("CertificateInvalid", f"the certificate of {harmless(trouble.detail)}; {hint}")
        case Kind.HOST_KEY_UNKNOWN | Kind.HOST_KEY_CHANGED:
            return _host_key(trouble, remote)
        case Kind.NO_HOST:
            return GitProblem("GitNotFound", f"there is no host {host}; correct spec.source.git.url")
        case Kind.IDENTITY:
            hint = f"put an ed25519, rsa or ecdsa key without a passphrase into identity of {_SECRET}"
            return GitProblem("GitAuthFailed", f"the key for {host} cannot be read; {hint}")
        case Kind.AUTH:
            return _auth(remote)
        case Kind.REPOSITORY:
            return GitProblem("GitNotFound", f"there is no repository at {url}; correct spec.source.git.url")
        case Kind.NO_GIT:
            message = f"{url} is no git repository, or a shallow copy of one; correct spec.source.git.url"
            return GitProblem("GitNotFound", message)
        case Kind.COMMIT:
            return GitProblem(
                "Unreachable", f"{host} took back what it offered; it is tried again", passing=True
            )
        case Kind.SHA256:
            hint = "use one whose commit ids have 40 digits"
            return GitProblem(
                "UnsupportedRepository", f"{url} is a sha256 repository, which is not read; {hint}"
            )
    return GitProblem("Unreachable", f"{host} could not be read; it is tried again by itself", passing=True)


def too_slow(remote: Remote, seconds: float) -> GitProblem:
    """The problem of a remote that took too long."""
    message = f"{remote.host} did not answer within {seconds:.0f} s; it is tried again by itself"
    return GitProblem("Unreachable", message, passing=True)


def too_large(most: int) -> GitProblem:
    """The problem of a commit that cannot be fetched, with `most` bytes, or unpacked within the limits."""
    size = f"{most >> 20} MiB" if most % (1 << 20) == 0 else f"{most} bytes"
    return GitProblem(
        "RepositoryTooLarge",
        f"one commit has more than {size}, or unpacks to more than is allowed; keep large files out of the "
        "repository",
    )


def too_many() -> GitProblem:
    """The problem of a repository that advertises more than is listened to."""
    return GitProblem(
        "TooManyRefs",
        f"the list of the repository's branches and tags has more than {MAX_LISTING >> 20} MiB; "
        "delete those that are not needed, or name a repository with fewer",
    )


def no_commit(remote: Remote, head: Head) -> GitProblem:
    """The problem of a commit that is not there, or that the server gives to nobody by its id."""
    if head.name != head.commit:
        message = f"{harmless(head.name)} moved while it was read; it is read again by itself"
        return GitProblem("Unreachable", message, passing=True)
    return GitProblem(
        "GitNotFound",
        f"{shown(remote.url)} has no commit {head.commit}, or gives none by its id: it was never pushed, or "
        "was removed by a forced push; push it, or correct spec.source.git.ref",
    )


def check(remote: Remote, ref: Mapping[str, str]) -> None:
    """Whether the remote may be asked for `ref`; the CRD says the same of most. Raises GitProblem. Pure."""
    try:
        parse(remote.url)
    except ValueError as error:
        scheme = remote.url.partition("://")[0]
        reason = "InvalidUrl" if scheme in PORTS else "UnsupportedScheme"
        raise GitProblem(reason, f"{error}; change spec.source.git.url") from None
    commit = ref.get("commit", "0" * 40)
    if len(commit) == 64:
        raise GitProblem(
            "UnsupportedRepository", "the id of a commit has 40 digits; sha256 repositories are not read"
        )
    if not _COMMIT.fullmatch(commit):
        raise GitProblem("GitNotFound", "spec.source.git.ref.commit is no commit id of 40 hexadecimal digits")


def _host_key(trouble: Trouble, remote: Remote) -> GitProblem:
    changed = trouble.kind is Kind.HOST_KEY_CHANGED
    reason = "HostKeyMismatch" if changed else "HostKeyUnknown"
    what = "which is not the one in" if changed else "and there is none in"
    return GitProblem(
        reason,
        f"{remote.host} showed the host key {trouble.detail}, {what} known_hosts of {_SECRET}; compare it "
        f"with what its operator publishes, then put the output of `{keyscan(remote.url)}` there",
    )


def _auth(remote: Remote) -> GitProblem:
    if remote.ssh:
        hint = (
            "register its public half there"
            if remote.identity
            else f"put a private key into identity of {_SECRET}"
        )
    elif remote.access.given:
        hint = f"check {_SECRET}"
    else:
        hint = "name a Secret with username and password in spec.source.git.secretRef, if it exists at all"
    what = "did not take the key" if remote.ssh and remote.identity else "refused access to the repository"
    return GitProblem("GitAuthFailed", f"{remote.host} {what}; {hint}")
