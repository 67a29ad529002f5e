"""`python3 -m controller.git.child`: questions to remotes, in a process of their own.

What a repository sends is unpacked here, where it can exhaust nothing but this
process: memory, time and files are limited before a byte is read. A request comes
as one line of JSON on stdin, with the secrets, and the answer goes to stdout as
one line: `{"head": {"name", "commit"}}`, `{"subject", "tree"}` or
`{"problem": {"reason", "message", "passing"}}`. After a listing another one may be
asked; a fetch is the last. Started by `controller.git.process`.
"""

import json
import math
import resource
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pygit2

from controller.git.failure import MAX_LISTING, too_large, too_many
from controller.git.remote import TooLong, fetched, listed
from controller.git.repository import GitProblem, Head, Remote
from egress.addresses import Rules

MAX_REQUEST = 4 << 20
MEMORY = 160 << 20
"""Bytes that a question may take beyond what the process has when it begins."""
COMPLETED = 28 << 20
"""Bytes of the largest file beyond those that are fetched: what completes a pack."""
_STACK = 512 << 10
_WINDOW = 8 << 20


def limit(most: int) -> None:
    """Limits this process from now on: its memory, its files, where `most` bytes are fetched."""
    threading.stack_size(_STACK)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + MEMORY
    for what, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, most + COMPLETED),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (value, value))
    # Packs are read through small windows, so that their size is not counted as memory.
    pygit2.settings.mwindow_size = _WINDOW
    pygit2.settings.mwindow_mapped_limit = 4 * _WINDOW
    pygit2.settings.cache_max_size(_WINDOW)


def limit_time(seconds: float) -> None:
    """Limits the time on a processor that is taken from now on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime + seconds)
    # SIGXCPU ends the process; the hard limit stays, so that the next question can have its own.
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request; never raises for what the remote did."""
    listing = "ref" in request
    remote, place = Remote(**request["remote"]), Path(request["place"])
    rules, seconds = Rules.parse(request["allow"], request["deny"]), float(request["seconds"])
    try:
        if listing:
            return {"head": asdict(listed(remote, request["ref"], rules, seconds, MAX_LISTING, place))}
        head, path = Head(**request["head"]), str(request["path"])
        return asdict(fetched(remote, head, path, rules, seconds, int(request["most"]), place))
    except GitProblem as error:
        problem = error
    except (TooLong, MemoryError):
        problem = too_many() if listing else too_large(int(request["most"]))
    return {"problem": {"reason": problem.reason, "message": problem.message, "passing": problem.passing}}


def main() -> int:
    """Answers what is asked until nobody asks any more, or a fetch was asked for. 0."""
    limited = False
    while line := sys.stdin.readline(MAX_REQUEST):
        request = json.loads(line)
        if not limited:
            limit(int(request.get("most", MAX_LISTING)))
            limited = True
        limit_time(request["seconds"])
        sys.stdout.write(json.dumps(answer(request)) + "\n")
        sys.stdout.flush()
        if "ref" not in request:
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
