"""A git repository as the Project's owner knows it: its address, its heads, and what goes wrong with it.

Pure. Called by what does the talking (`controller.git.client`, `controller.git.child`) and by `controller.project`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from egress.git.credentials import Access
from egress.git.repository_url import harmless

MAX_SUBJECT = 500


class GitProblem(Exception):
    """A look failed. `reason` is a stable word; `passing` where it may well pass by itself."""

    def __init__(self, reason: str, message: str, passing: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.passing = passing


@dataclass(frozen=True)
class Remote:
    """A repository with what opens it (from the Project's Secret)."""

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    bearer: str = field(default="", repr=False)
    ca: str = field(default="", repr=False)
    identity: str = field(default="", repr=False)
    known_hosts: str = field(default="", repr=False)

    @property
    def access(self) -> Access:
        """What opens it."""
        return Access(self.username, self.password, self.bearer, self.ca, self.identity, self.known_hosts)

    @property
    def ssh(self) -> bool:
        """Whether it is read by ssh."""
        return self.url.startswith("ssh:")

    @property
    def host(self) -> str:
        """The host, for back-off and for people: without a user, bounded, harmless."""
        try:
            return harmless(urlsplit(self.url).netloc.rpartition("@")[2])
        except ValueError:
            return "(no host)"


@dataclass(frozen=True)
class Head:
    """A reference by its name and where it is."""

    name: str
    commit: str


@dataclass(frozen=True)
class Commit:
    """A commit's first line, and the id of its tree below a path."""

    subject: str
    tree: str


def refname(ref: Mapping[str, str]) -> str:
    """The full name of what `ref` asks for; HEAD where it asks for nothing. Pure."""
    if branch := ref.get("branch"):
        return f"refs/heads/{branch}"
    return f"refs/tags/{ref['tag']}" if ref.get("tag") else "HEAD"


def choose(heads: Mapping[str, str], ref: Mapping[str, str]) -> Head:
    """The head that `ref` names among those of a repository. Raises GitProblem. Pure."""
    if not heads:
        raise GitProblem("EmptyRepository", "the repository has no commit yet; push one")
    name = refname(ref)
    commit = heads.get(f"{name}^{{}}") or heads.get(name)
    if commit is None:
        what = next((f"{kind} {ref[kind]}" for kind in ("branch", "tag") if ref.get(kind)), "default branch")
        there = sorted(harmless(n[11:], 60) for n in heads if n.startswith("refs/heads/"))[:10]
        raise GitProblem(
            "TagNotFound" if ref.get("tag") else "BranchNotFound",
            f"the repository has no {harmless(what)}; push it, or correct spec.source.git.ref "
            f"(branches: {', '.join(there) or 'none'})",
        )
    return Head(name, commit)


def subject(message: str) -> str:
    """The first line of a commit's message, printable and bounded. Pure."""
    first = next((line for line in message.splitlines() if line.strip()), "")
    return "".join(letter if letter.isprintable() else " " for letter in first).strip()[:MAX_SUBJECT]
