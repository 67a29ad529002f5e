"""A git repository as the Project's owner knows it: its address, its heads, and what goes wrong with it.

Pure. Called by what does the talking (`controller.git`, `controller.git_child`), and by `controller.project`.
"""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

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

    @property
    def host(self) -> str:
        """The host, for back-off."""
        return urlsplit(self.url).netloc


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


def choose(heads: dict[str, str], ref: dict[str, str]) -> Head:
    """The head that `ref` names among all of a repository. Raises GitProblem. Pure."""
    if not heads:
        raise GitProblem("EmptyRepository", "the repository has no commit yet; push one")
    if branch := ref.get("branch"):
        name, what = f"refs/heads/{branch}", f"branch {branch}"
    elif tag := ref.get("tag"):
        name, what = f"refs/tags/{tag}", f"tag {tag}"
    else:
        name, what = "HEAD", "default branch"
    commit = heads.get(f"{name}^{{}}") or heads.get(name)
    if commit is None:
        reason = "TagNotFound" if "tag" in ref else "BranchNotFound"
        there = sorted(n.removeprefix("refs/heads/") for n in heads if n.startswith("refs/heads/"))[:10]
        raise GitProblem(
            reason,
            f"the repository has no {what}; push it, or correct spec.source.git.ref "
            f"(branches: {', '.join(there) or 'none'})",
        )
    return Head(name, commit)


def meaning(text: str, remote: Remote, unknown_host: bool) -> GitProblem:
    """What an error of libgit2 means to the owner of the Project. Pure."""
    low, host = text.lower(), remote.host
    given = bool(remote.username or remote.password or remote.bearer)
    if unknown_host:
        return GitProblem("GitNotFound", f"there is no host {host}; correct spec.source.git.url")
    if any(word in low for word in ("status code: 401", "status code: 403", "authentication", "credential")):
        hint = (
            "check the Secret named in spec.source.git.secretRef"
            if given
            else "name a Secret with username and password in spec.source.git.secretRef, if it exists at all"
        )
        return GitProblem("GitAuthFailed", f"{host} refused access to the repository; {hint}")
    if any(f"status code: {code}" in low for code in (400, 404, 405, 410)) or "not found" in low:
        message = f"there is no repository at {remote.url}; correct spec.source.git.url"
        return GitProblem("GitNotFound", message)
    if "content-type" in low or "invalid http response" in low:
        return GitProblem("GitNotFound", f"{remote.url} is no git repository; correct spec.source.git.url")
    return GitProblem("Unreachable", f"{host} could not be read; it is tried again by itself", passing=True)


def subject(message: str) -> str:
    """The first line of a commit's message, printable and bounded. Pure."""
    first = next((line for line in message.splitlines() if line.strip()), "")
    return "".join(letter if letter.isprintable() else " " for letter in first).strip()[:MAX_SUBJECT]
