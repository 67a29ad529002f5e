"""Git remotes, heads, commits and problems as values. Pure.

Called by `controller.git.client`, `controller.git.child` and `controller.source`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from egress.git.credentials import GitCredentials
from egress.git.repository_url import printable


class GitProblem(Exception):
    """Failed poll. `reason` is a stable word; `transient` if a retry may help."""

    def __init__(self, reason: str, message: str, transient: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.transient = transient


@dataclass(frozen=True)
class Remote:
    """Repository URL with credentials (from the Project's Secret)."""

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    bearer: str = field(default="", repr=False)
    ca: str = field(default="", repr=False)
    identity: str = field(default="", repr=False)
    known_hosts: str = field(default="", repr=False)

    @property
    def access(self) -> GitCredentials:
        """Credentials of the remote."""
        return GitCredentials(
            self.username, self.password, self.bearer, self.ca, self.identity, self.known_hosts
        )

    @property
    def ssh(self) -> bool:
        """Whether the URL uses SSH."""
        return self.url.startswith("ssh:")

    @property
    def host(self) -> str:
        """Host for back-off and messages: without a user, bounded, printable."""
        try:
            return printable(urlsplit(self.url).netloc.rpartition("@")[2])
        except ValueError:
            return "(no host)"


@dataclass(frozen=True)
class RemoteHead:
    """Reference name and its commit."""

    name: str
    commit: str


@dataclass(frozen=True)
class CommitInfo:
    """Subject of a commit, and the id of its tree below a path."""

    subject: str
    tree: str


def refname(ref: Mapping[str, str]) -> str:
    """Return the full name of `ref`; HEAD if empty. Pure."""
    if branch := ref.get("branch"):
        return f"refs/heads/{branch}"
    return f"refs/tags/{ref['tag']}" if ref.get("tag") else "HEAD"


def choose_head(heads: Mapping[str, str], ref: Mapping[str, str]) -> RemoteHead:
    """Return the head that `ref` names. Raises GitProblem. Pure."""
    if not heads:
        raise GitProblem("EmptyRepository", "the repository has no commit yet; push one")
    name = refname(ref)
    commit = heads.get(f"{name}^{{}}") or heads.get(name)
    if commit is None:
        wanted_ref = next(
            (f"{kind} {ref[kind]}" for kind in ("branch", "tag") if ref.get(kind)), "default branch"
        )
        branches = sorted(printable(n[11:], 60) for n in heads if n.startswith("refs/heads/"))[:10]
        raise GitProblem(
            "TagNotFound" if ref.get("tag") else "BranchNotFound",
            f"the repository has no {printable(wanted_ref)}; push it, or correct spec.source.git.ref "
            f"(branches: {', '.join(branches) or 'none'})",
        )
    return RemoteHead(name, commit)
