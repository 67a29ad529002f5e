"""`python3 -m controller.git_child`: one fetch of one commit, in a process of its own, then its end.

What a repository sends is unpacked here, where it can exhaust nothing but this
process: memory, time and files are limited before a byte is read. A request comes
as one line of JSON on stdin, with the secrets, and the answer goes to stdout as
one line: `{"subject", "tree"}` or `{"problem": {"reason", "message", "passing"}}`.
Started by `controller.git_worker`.
"""

import json
import math
import resource
import sys
import threading
from pathlib import Path
from typing import Any

import pygit2

from controller.git_remote import MAX_BYTES, callbacks, gated
from controller.repository import Commit, GitProblem, Head, Remote, subject
from outbound.addresses import Rules
from outbound.gate import Gate

MAX_REQUEST = 1 << 20
MEMORY = 160 << 20
"""Bytes that a fetch may take beyond what the process has when it begins."""
FILE = MAX_BYTES + (28 << 20)
"""Bytes of the largest file: the pack, with what completes it."""
_STACK = 512 << 10
_WINDOW = 8 << 20
_LOCAL = "refs/crewyard/head"


def too_large() -> GitProblem:
    """The problem of a commit that cannot be unpacked within the limits."""
    return GitProblem(
        "RepositoryTooLarge",
        f"one commit has more than {MAX_BYTES >> 20} MiB, or unpacks to more than is allowed; "
        "keep large files out of the repository",
    )


def limit(cpu_seconds: int) -> None:
    """Limits this process from now on: its memory, its time on a processor, its files."""
    threading.stack_size(_STACK)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + MEMORY
    for what, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))
    # Packs are read through small windows, so that their size is not counted as memory.
    pygit2.settings.mwindow_size = _WINDOW
    pygit2.settings.mwindow_mapped_limit = 4 * _WINDOW
    pygit2.settings.cache_max_size(_WINDOW)


def fetch(remote: Remote, head: Head, path: str, place: Path, gate: Gate) -> Commit:
    """Subject and tree of a commit, by way of the directory `place`. Raises GitProblem or pygit2's errors."""
    repository = pygit2.init_repository(str(place), bare=True)
    anonymous = repository.remotes.create_anonymous(gate.address(remote.url))
    try:
        anonymous.fetch([f"+{head.commit}:{_LOCAL}"], callbacks=callbacks(remote), depth=1)
    except (pygit2.GitError, KeyError) as error:
        if _exhausted(error) or not head.name.startswith(("refs/", "HEAD")):
            raise
        anonymous.fetch([f"+{head.name}:{_LOCAL}"], callbacks=callbacks(remote), depth=1)
    commit = repository.get(head.commit)
    if commit is None:
        raise GitProblem("Unreachable", f"{head.name} moved while it was read", passing=True)
    if not isinstance(commit, pygit2.Commit):
        raise GitProblem("GitNotFound", f"{head.commit} is no commit; correct spec.source.git.ref")
    return Commit(subject(commit.message), _tree(commit, path))


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


def _exhausted(error: Exception) -> bool:
    """Whether a limit of this process was met."""
    low = str(error).lower()
    words = ("out of memory", "cannot allocate", "failed to mmap", "failed to allocate", "file too large")
    return isinstance(error, MemoryError) or any(word in low for word in words)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request; never raises for what the remote did."""
    remote, head = Remote(**request["remote"]), Head(**request["head"])
    rules = Rules.parse(request["allow"], request["deny"])

    def work(gate: Gate) -> Commit:
        try:
            return fetch(remote, head, str(request["path"]), Path(request["place"]), gate)
        except (pygit2.GitError, KeyError, ValueError, OSError, MemoryError) as error:
            if _exhausted(error):
                raise too_large() from None
            raise

    try:
        found = gated(remote, rules, float(request["seconds"]), work)
    except GitProblem as problem:
        told = {"reason": problem.reason, "message": problem.message, "passing": problem.passing}
        return {"problem": told}
    return {"subject": found.subject, "tree": found.tree}


def main() -> int:
    """Waits for one request, answers it, ends. 0, also where nobody asked."""
    line = sys.stdin.readline(MAX_REQUEST)
    if not line:
        return 0
    request = json.loads(line)
    limit(math.ceil(request["seconds"]))
    sys.stdout.write(json.dumps(answer(request)) + "\n")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
