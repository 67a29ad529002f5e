"""`python3 -m controller.git.child`: requests to git remotes, in a separate process.

It unpacks untrusted input, which can exhaust only this process: memory, time and files are limited
before the first byte is read. A request is one line of JSON on stdin, with the secrets; the
response on stdout is one line: `{"head": {"name", "commit"}}`, `{"subject", "tree"}` or
`{"problem": {"reason", "message", "transient"}}`. Another listing may follow a listing; a fetch is
the last request. Started by `controller.git.process`.
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

from controller.git.failure import MAX_LISTING_BYTES, too_large, too_many
from controller.git.remote import ListingTooLong, fetch_commit, list_head
from controller.git.repository import GitProblem, Remote, RemoteHead
from egress.addresses import AddressRules

MAX_REQUEST_BYTES = 4 << 20
MAX_MEMORY_BYTES = 160 << 20
"""Memory for requests beyond the size of the process at its start."""
PACK_OVERHEAD_BYTES = 28 << 20
"""File size allowed beyond the fetched bytes: libgit2 completes a pack with it."""
_STACK_BYTES = 512 << 10
_WINDOW_BYTES = 8 << 20


def limit_resources(max_bytes: int) -> None:
    """Limit memory and file size of this process, for fetches of `max_bytes`."""
    threading.stack_size(_STACK_BYTES)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + MAX_MEMORY_BYTES
    for limit, value in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, max_bytes + PACK_OVERHEAD_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    # Packs are read through small windows, so their size does not count as memory.
    pygit2.settings.mwindow_size = _WINDOW_BYTES
    pygit2.settings.mwindow_mapped_limit = 4 * _WINDOW_BYTES
    pygit2.settings.cache_max_size(_WINDOW_BYTES)


def limit_time(seconds: float) -> None:
    """Limit the CPU time used from now on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    max_seconds = math.ceil(used.ru_utime + used.ru_stime + seconds)
    # SIGXCPU ends the process; the hard limit stays, so the next request can set its own.
    resource.setrlimit(resource.RLIMIT_CPU, (max_seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def handle(request: dict[str, Any]) -> dict[str, Any]:
    """Return the response to a request; never raises for errors of the remote."""
    listing = "ref" in request
    remote, work_dir = Remote(**request["remote"]), Path(request["place"])
    rules, seconds = AddressRules.parse(request["allow"], request["deny"]), float(request["seconds"])
    try:
        if listing:
            return {
                "head": asdict(list_head(remote, request["ref"], rules, seconds, MAX_LISTING_BYTES, work_dir))
            }
        head, path = RemoteHead(**request["head"]), str(request["path"])
        return asdict(fetch_commit(remote, head, path, rules, seconds, int(request["most"]), work_dir))
    except GitProblem as error:
        problem = error
    except (ListingTooLong, MemoryError):
        problem = too_many() if listing else too_large(int(request["most"]))
    return {"problem": {"reason": problem.reason, "message": problem.message, "transient": problem.transient}}


def main() -> int:
    """Serve requests until stdin closes, or until a fetch is done. Return 0."""
    limited = False
    while line := sys.stdin.readline(MAX_REQUEST_BYTES):
        request = json.loads(line)
        if not limited:
            limit_resources(int(request.get("most", MAX_LISTING_BYTES)))
            limited = True
        limit_time(request["seconds"])
        sys.stdout.write(json.dumps(handle(request)) + "\n")
        sys.stdout.flush()
        if "ref" not in request:
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
