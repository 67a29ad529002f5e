"""Submodules of a commit: each is fetched as the commit that its repository records. Called by git_tree.

As `git clone --recurse-submodules` does, without a checkout: of `.gitmodules` only `path`, `url` and
`update = none` count.
"""

from dataclasses import dataclass
from typing import Any

import pygit2

from build.errors import CONTEXT_TOO_LARGE, GIT_NOT_FOUND, BuildRefused
from build.settings import GitSource
from build.source.git_config import read_git_config
from build.source.git_fetcher import GitFetcher
from build.source.submodules.url import resolve_url
from egress.git.repository_url import display_url, printable
from egress.git.source_path import normalized_path

MAX_SUBMODULES = 50
MAX_LEVELS = 5
_OPTIONAL = "If the crew does not need it, set `update = none` for it in .gitmodules."


@dataclass(frozen=True)
class Checkout:
    """A fetched commit: its repository, its root and its URL; `level` counts the submodules it lies in."""

    repository: Any
    root: Any
    url: str
    level: int = 0


class SubmoduleFetches:
    """The submodules of one source; equal ones are fetched once."""

    def __init__(self, fetcher: GitFetcher) -> None:
        self._fetcher = fetcher
        self._fetched: dict[tuple[str, str], Checkout] = {}

    def open(self, parent: Checkout, path: str, shown: str, commit: str) -> Checkout | None:
        """Return the submodule at `path` of `parent`, which the source shows at `shown`.

        None without a URL and with `update = none`. Raises BuildRefused or InfrastructureError.
        """
        settings = _settings_of(read_git_config(parent.repository, parent.root, ".gitmodules"), path)
        if not settings.get("url") or settings.get("update") == "none":
            why = "has `update = none`" if settings.get("url") else "has no url in .gitmodules"
            self._fetcher.log.line(f"{printable(shown)} is a submodule that {why}: not fetched")
            return None
        try:
            url = resolve_url(settings["url"], parent.url)
        except ValueError as error:
            message = (
                f"the submodule {printable(shown)} has the URL {display_url(settings['url'])!r}: {error}"
            )
            hint = f"Use https:// or ssh://, or ../ for a repository beside this one. {_OPTIONAL}"
            raise BuildRefused(GIT_NOT_FOUND, message, hint) from None
        if (url, commit) not in self._fetched:
            self._fetched[url, commit] = self._fetch(parent, url, shown, commit)
        return self._fetched[url, commit]

    def _fetch(self, parent: Checkout, url: str, shown: str, commit: str) -> Checkout:
        if len(self._fetched) >= MAX_SUBMODULES or parent.level >= MAX_LEVELS:
            limit = f"{MAX_LEVELS} levels of" if parent.level >= MAX_LEVELS else f"{MAX_SUBMODULES}"
            problem = f"{printable(shown)}: the source has more than {limit} submodules"
            raise BuildRefused(CONTEXT_TOO_LARGE, problem, _OPTIONAL)
        self._fetcher.log.line(f"fetching the submodule {printable(shown)}: {display_url(url)} at {commit}")
        try:
            repository = self._fetcher.fetch(GitSource(url, commit))
        except BuildRefused as error:
            message = f"the submodule {printable(shown)}: {error.message}"
            raise BuildRefused(error.reason, message, f"{error.hint} {_OPTIONAL}") from None
        return Checkout(repository, repository[commit].peel(pygit2.Tree), url, parent.level + 1)


def _settings_of(values: dict[str, str], path: str) -> dict[str, str]:
    """Return the keys of the submodule at `path`; empty where none has this path. Pure."""
    sections: dict[str, dict[str, str]] = {}
    for key, value in values.items():
        kind, _, rest = key.partition(".")
        name, _, last = rest.rpartition(".")
        if kind == "submodule" and name:
            sections.setdefault(name, {})[last] = value
    # The last one, as in any configuration of git.
    matching = [s for s in sections.values() if s.get("path") and normalized_path(s["path"]) == path]
    return matching[-1] if matching else {}
