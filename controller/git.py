"""Looking at git repositories: the head of a reference, and one commit's subject and tree.

pygit2 blocks, so it works in a few threads of its own, with time limits; every
connection goes through `build.gate`, which checks address and certificate in the
same moment. Called by `controller.project.source`.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pygit2

from build.addresses import Rules
from build.gate import Gate
from controller.config import Config
from controller.repository import Commit, GitProblem, Head, Remote, choose, meaning, subject

T = TypeVar("T")
THREADS = 8
CONNECT_SECONDS = 10
SILENCE_SECONDS = 30
MAX_BYTES = 100 << 20
"""Of one fetch: all threads together stay below what the pod may keep in /tmp."""
_LOCAL = "refs/crewyard/head"


class Git:
    """The threads that talk to repositories. Every call ends within the configured time."""

    def __init__(self, config: Config) -> None:
        self._rules = Rules.parse(config.net_allow, config.net_deny)
        self._timeout = config.timing.git_timeout
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="git")

    def close(self) -> None:
        """Starts no more work; what a thread is at ends by its own time limits."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def head(self, remote: Remote, ref: dict[str, str]) -> Head:
        """Where `ref` (branch, tag or commit; the default branch if empty) is. Raises GitProblem."""
        if "commit" in ref:
            return Head(ref["commit"], ref["commit"])
        heads = await self._run(remote, lambda gate: _list(remote, gate))
        return choose(heads, ref)

    async def commit(self, remote: Remote, head: Head, path: str) -> Commit:
        """Subject and tree of a commit. Raises GitProblem."""
        return await self._run(remote, lambda gate: _fetch(remote, head, path, gate))

    async def _run(self, remote: Remote, work: Callable[[Gate], T]) -> T:
        if urlsplit(remote.url).scheme not in ("http", "https"):
            message = "only https:// and http:// are read; change spec.source.git.url"
            raise GitProblem("UnsupportedScheme", message)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout):
                return await loop.run_in_executor(self._pool, self._gated, remote, work)
        except TimeoutError:
            message = f"{remote.host} did not answer within {self._timeout:.0f} s"
            raise GitProblem("Unreachable", message, passing=True) from None

    def _gated(self, remote: Remote, work: Callable[[Gate], T]) -> T:
        pygit2.settings.server_connect_timeout = CONNECT_SECONDS * 1000
        pygit2.settings.server_timeout = SILENCE_SECONDS * 1000
        with Gate(
            self._rules,
            connect_timeout=CONNECT_SECONDS,
            idle_timeout=SILENCE_SECONDS,
            most=MAX_BYTES,
            ca=remote.ca,
            home=remote.url,
        ) as gate:
            try:
                return work(gate)
            except (pygit2.GitError, KeyError, ValueError, OSError) as error:
                if gate.exceeded:
                    raise GitProblem(
                        "RepositoryTooLarge", f"one commit has more than {MAX_BYTES >> 20} MiB"
                    ) from error
                if gate.refusals:
                    raise GitProblem(
                        "AddressRefused",
                        f"{gate.refusals[0]}; the installation's CREWYARD_NET_ALLOW can name it",
                    ) from error
                if gate.untrusted:
                    raise GitProblem(
                        "CertificateInvalid",
                        f"the certificate of {gate.untrusted[0]}; put its issuer into ca.crt of the Secret",
                    ) from error
                raise meaning(str(error), remote, bool(gate.unknown)) from error


def _callbacks(remote: Remote) -> pygit2.RemoteCallbacks:
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


def _in_empty_repository(remote: Remote, gate: Gate, work: Callable[[Any, Any], T]) -> T:
    place = tempfile.mkdtemp(prefix="git-")
    try:
        repository = pygit2.init_repository(str(Path(place)), bare=True)
        return work(repository, repository.remotes.create_anonymous(gate.address(remote.url)))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _list(remote: Remote, gate: Gate) -> dict[str, str]:
    def work(_: Any, anonymous: Any) -> dict[str, str]:
        found = anonymous.list_heads(callbacks=_callbacks(remote))
        return {str(head.name): str(head.oid) for head in found}

    return _in_empty_repository(remote, gate, work)


def _fetch(remote: Remote, head: Head, path: str, gate: Gate) -> Commit:
    def work(repository: Any, anonymous: Any) -> Commit:
        try:
            wanted = [f"+{head.commit}:{_LOCAL}"]
            anonymous.fetch(wanted, callbacks=_callbacks(remote), depth=1)
        except (pygit2.GitError, KeyError):
            if not head.name.startswith(("refs/", "HEAD")):
                raise
            wanted = [f"+{head.name}:{_LOCAL}"]
            anonymous.fetch(wanted, callbacks=_callbacks(remote), depth=1)
        commit = repository.get(head.commit)
        if commit is None:
            raise GitProblem("Unreachable", f"{head.name} moved while it was read", passing=True)
        return Commit(subject(commit.message), _tree(commit, path))

    return _in_empty_repository(remote, gate, work)


def _tree(commit: Any, path: str) -> str:
    if not path.strip("/"):
        return str(commit.tree.id)
    try:
        found = commit.tree[path.strip("/")]
    except KeyError:
        found = None
    if found is None or found.type_str != "tree":
        raise GitProblem(
            "PathNotFound", f"the head has no directory {path}; push it, or correct spec.source.git.path"
        )
    return str(found.id)
