"""Fetches in a process of their own: what a repository sends exhausts that process and nothing else."""

import asyncio
import hashlib
import http.server
import os
import random
import signal
import struct
import threading
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controller.git import fetch_pool
from controller.git.fetch_pool import FetchPool
from controller.git.process import GitChild, exit_problem
from controller.git.repository import GitProblem, Remote, RemoteHead
from crds.installation_limits import InstallationLimits
from tests.testbed.git_server import GitServer

LOOPBACK = ("127.0.0.0/8",)


@pytest.fixture
async def fetches() -> AsyncIterator[FetchPool]:
    made = FetchPool(LOOPBACK, (), InstallationLimits.context_bytes)
    yield made
    await made.close()


async def test_commit_is_read_with_subject_and_subtree(fetches, tmp_path):
    with GitServer(tmp_path, username="me", password="word") as server:
        repository = server.create("crew")
        sha = repository.commit({"a/main.py": "1", "b": "2"}, "A subject\n\nand more")
        tree = repository._git("rev-parse", f"{sha}:a")
        remote = Remote(server.url("crew"), "me", "word")
        head = RemoteHead("refs/heads/main", sha)
        for _ in range(2):
            found = await fetches.commit(remote, head, "a", 90)
            assert (found.subject, found.tree) == ("A subject", tree)
        with pytest.raises(GitProblem) as refused:
            await fetches.commit(Remote(server.url("crew")), head, "", 90)
        assert refused.value.reason == "GitAuthFailed"
        with pytest.raises(GitProblem) as missing:
            await fetches.commit(remote, head, "nope", 90)
        assert missing.value.reason == "PathNotFound"


async def test_child_arguments_and_environment_hold_no_secret(fetches, tmp_path, monkeypatch):
    monkeypatch.setenv("CREWYARD_TOKEN_KEY", "a word for the controller alone")
    child = await GitChild.start()
    try:
        there = Path(f"/proc/{child.process.pid}")
        async with asyncio.timeout(60):
            # Both are empty while it still becomes what it is to be.
            while not (there / "cmdline").read_bytes():
                await asyncio.sleep(0.01)
        assert b"CREWYARD" not in (there / "environ").read_bytes()
        assert (there / "cmdline").read_bytes().split(b"\0")[1:3] == [b"-m", b"controller.git.child"]
    finally:
        await child.end()


def header(kind: int, size: int) -> bytes:
    """The head of an object in a pack."""
    byte, size = (kind << 4) | (size & 15), size >> 4
    found = bytearray()
    while size:
        found.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    return bytes([*found, byte])


def number(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append((value & 0x7F) | 0x80)
        value >>= 7
    return bytes([*found, value])


def bomb() -> tuple[str, bytes]:
    """A commit, and a pack of a few kilobytes that holds it and a delta of one gigabyte."""

    def sha(kind: str, data: bytes) -> bytes:
        return hashlib.sha1(f"{kind} {len(data)}\0".encode() + data).digest()

    base = bytes(0xFFFFFF)
    tree = b"100644 x\0" + sha("blob", base)
    commit = (
        f"tree {sha('tree', tree).hex()}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n".encode()
    )
    copy = b"\xf0\xff\xff\xff"  # from offset 0, all of the base
    delta = number(len(base)) + number(64 * len(base)) + 64 * copy
    objects = [
        header(1, len(commit)) + zlib.compress(commit),
        header(2, len(tree)) + zlib.compress(tree),
        header(3, len(base)) + zlib.compress(base),
        header(7, len(delta)) + sha("blob", base) + zlib.compress(delta),
    ]
    pack = b"PACK" + struct.pack(">II", 2, len(objects)) + b"".join(objects)
    return sha("commit", commit).hex(), pack + hashlib.sha1(pack).digest()


def line(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return f"{len(data) + 4:04x}".encode() + data


class Bomber(http.server.BaseHTTPRequestHandler):
    """Answers a shallow fetch with the pack."""

    commit, pack = bomb()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""

    def _answer(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"application/x-git-upload-pack-{kind}")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        able = "multi_ack multi_ack_detailed shallow allow-reachable-sha1-in-want allow-tip-sha1-in-want"
        refs = line(f"{self.commit} HEAD\0{able}\n") + line(f"{self.commit} refs/heads/main\n")
        self._answer("advertisement", line("# service=git-upload-pack\n") + b"0000" + refs + b"0000")

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        shallow = line(f"shallow {self.commit}") + b"0000" if b"deepen" in asked else b""
        end = line("NAK\n") + self.pack if b"done" in asked else b""
        self._answer("result", shallow + end)


async def test_size_limit_of_a_commit_is_configurable(fetches, tmp_path):
    small = FetchPool(LOOPBACK, (), 1 << 20)
    with GitServer(tmp_path) as server:
        repository = server.create("crew")
        # The list of branches and tags, 16 MiB, may come with it.
        sha = repository.commit({"data": random.Random(1).randbytes(20 << 20)}, "Much")
        remote, head = Remote(server.url("crew")), RemoteHead("refs/heads/main", sha)
        try:
            with pytest.raises(GitProblem) as error:
                await small.commit(remote, head, "", 120)
        finally:
            await small.close()
        assert (error.value.reason, "more than 1 MiB" in error.value.message) == ("RepositoryTooLarge", True)
        assert (await fetches.commit(remote, head, "", 120)).tree


async def test_delta_bomb_kills_only_its_process(fetches):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bomber)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        remote = Remote(f"http://127.0.0.1:{server.server_address[1]}/x.git")
        with pytest.raises(GitProblem) as error:
            await fetches.commit(remote, RemoteHead("refs/heads/main", Bomber.commit), "", 90)
        assert (error.value.reason, error.value.transient) == ("RepositoryTooLarge", False)
    finally:
        server.shutdown()
        server.server_close()


class SilentGitHandler(http.server.BaseHTTPRequestHandler):
    """Takes a request and never answers."""

    over = threading.Event()

    def do_GET(self) -> None:
        self.over.wait(120)


async def test_child_is_killed_at_the_deadline(fetches, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SilentGitHandler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        remote = Remote(f"http://127.0.0.1:{server.server_address[1]}/x.git")
        with pytest.raises(GitProblem) as error:
            await fetches.commit(remote, RemoteHead("refs/heads/main", "1" * 40), "", 0.5)
        assert (error.value.reason, error.value.transient) == ("Unreachable", True)
        assert list(tmp_path.glob("git-*")) == []
    finally:
        SilentGitHandler.over.set()
        server.shutdown()
        server.server_close()


async def test_dead_idle_child_is_replaced(fetches, tmp_path):
    with GitServer(tmp_path) as server:
        sha = server.create("crew").commit({"main.py": "1"}, "A commit")
        remote, head = Remote(server.url("crew")), RemoteHead("HEAD", sha)
        await fetches.commit(remote, head, "", 90)
        spare = await fetches._spare
        os.kill(spare.process.pid, signal.SIGKILL)
        await spare.process.wait()
        assert (await fetches.commit(remote, head, "", 90)).subject == "A commit"


@pytest.mark.parametrize(
    ("code", "reason", "transient"),
    [
        (-signal.SIGKILL, "RepositoryTooLarge", False),
        (-signal.SIGXCPU, "RepositoryTooLarge", False),
        (-signal.SIGSEGV, "RepositoryTooLarge", False),
        (1, "Unreachable", True),
        (0, "Unreachable", True),
    ],
)
def test_exit_of_a_child_is_classified(code, reason, transient):
    problem = exit_problem(code, Remote("https://git.example.org/x"), 150 << 20)
    assert (problem.reason, problem.transient) == (reason, transient)
    assert ("150 MiB" in problem.message) is not transient


async def test_idle_child_is_stopped_after_a_timeout(fetches, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch_pool, "SPARE_TTL_SECONDS", 1.0)
    started: asyncio.Queue[GitChild] = asyncio.Queue()
    start = GitChild.start

    async def noted_start() -> GitChild:
        child = await start()
        started.put_nowait(child)
        return child

    monkeypatch.setattr(GitChild, "start", noted_start)
    with GitServer(tmp_path) as server:
        sha = server.create("crew").commit({"main.py": "1"}, "A commit")
        await fetches.commit(Remote(server.url("crew")), RemoteHead("HEAD", sha), "", 90)
        async with asyncio.timeout(120):
            _used, spare = await started.get(), await started.get()
            await spare.process.wait()
        assert fetches._spare is None
