"""Looking at real repositories by smart http: empty, moving, cut-off and large ones."""

import asyncio
import subprocess
import threading

import pytest

from controller.git.client import MAX_LISTINGS_PER_HOST
from controller.git.repository import GitProblem, Remote, RemoteHead
from tests.testbed.git_server import GitServer
from tests.testbed.listeners import listening
from tests.unit.controller.source.polling import problem


async def test_repository_without_a_commit_is_reported(git, server):
    server.create("empty")
    assert (await problem(git, server.url("empty"), {})).reason == "EmptyRepository"
    assert (await problem(git, server.url("empty"), {"branch": "main"})).reason == "EmptyRepository"


async def test_branches_change_and_tags_resolve_to_commits(git, server):
    repository = server.create("crew")
    one = repository.commit({"a": "1"}, "one")
    two = repository.commit({"a": "2"}, "two", branch="next/one")
    repository._git("tag", "-a", "-m", "a tag", "v1", one)
    repository._git("tag", "v2", two)
    remote = Remote(server.url("crew"))
    assert await git.head(remote, {}) == RemoteHead("HEAD", one)
    assert (await git.head(remote, {"branch": "next/one"})).commit == two
    assert (await git.head(remote, {"tag": "v1"})).commit == one
    assert (await git.head(remote, {"tag": "v2"})).commit == two
    assert (await git.commit(remote, await git.head(remote, {"tag": "v1"}), "")).subject == "one"
    repository._git("update-ref", "-d", "refs/heads/next/one")
    gone = await problem(git, server.url("crew"), {"branch": "next/one"})
    assert gone.reason == "BranchNotFound" and "(branches: main)" in gone.message and not gone.transient
    assert (await problem(git, server.url("crew"), {"tag": "v3"})).reason == "TagNotFound"
    repository._git("symbolic-ref", "HEAD", "refs/heads/trunk")
    assert "no default branch" in (await problem(git, server.url("crew"), {})).message


async def test_tag_of_a_file_is_refused(git, server):
    repository = server.create("odd-tags")
    repository.commit({"a": "1"}, "one")
    repository._git("tag", "file", "main:a")
    repository._git("tag", "tree", "main^{tree}")
    for tag in ("file", "tree"):
        found = await problem(git, server.url("odd-tags"), {"tag": tag})
        assert found.reason in ("GitNotFound", "Unreachable") and found.message.isprintable()


async def test_pinned_commit_outside_of_all_branches_is_found(git, server):
    repository = server.create("forced")
    old = repository.commit({"a": "1"}, "old")
    new = repository.commit({"a": "2"}, "new")
    assert (await git.commit(Remote(server.url("forced")), RemoteHead(old, old), "")).subject == "old"
    repository.configure("uploadpack.allowReachableSHA1InWant", "false")
    # Not given by its id: in the history of the branches.
    assert (await git.commit(Remote(server.url("forced")), RemoteHead(old, old), "")).subject == "old"
    repository.reset(old)
    lost = await problem(git, server.url("forced"), {"commit": new})
    assert lost.reason == "GitNotFound" and new in lost.message and "forced push" in lost.message


async def test_head_that_moves_during_a_read_is_retried(git, server):
    repository = server.create("moving")
    repository.configure("uploadpack.allowReachableSHA1InWant", "false")
    old = repository.commit({"a": "1"}, "old")
    repository.reset(repository.commit({"a": "2"}, "other", branch="other"))
    with pytest.raises(GitProblem) as raised:
        await git.commit(Remote(server.url("moving")), RemoteHead("refs/heads/main", old), "")
    assert (raised.value.reason, raised.value.transient) == ("Unreachable", True)


async def test_shallow_server_repository_is_refused(git, server):
    repository = server.create("whole")
    for number in range(3):
        repository.commit({"a": str(number)}, f"commit {number}")
    cut = server.root / "cut.git"
    command = ["git", "clone", "--quiet", "--bare", "--depth=1", f"file://{repository.path}", str(cut)]
    subprocess.run(command, check=True, timeout=60)
    # libgit2 cannot read one.
    found = await problem(git, server.url("cut"), {})
    assert found.reason == "GitNotFound" and "shallow" in found.message


async def test_sha256_repository_is_unsupported(git, server, tmp_path):
    GitServer.repository(server.root, "long", "--object-format=sha256").commit({"a": "1"}, "one")
    assert (await problem(git, server.url("long"), {})).reason == "UnsupportedRepository"
    assert (await problem(git, server.url("long"), {"commit": "a" * 64})).reason == "UnsupportedRepository"


async def test_dumb_http_and_its_alternates_are_not_followed(git, server, tmp_path):
    """A directory served as files, whose alternates name another server and a local path."""
    repository = GitServer.repository(tmp_path, "dumb")
    repository.commit({"a": "1"}, "one")
    repository._git("update-server-info")
    with listening() as other:
        alternates = repository.path / "objects" / "info"
        alternates.mkdir(exist_ok=True)
        (alternates / "alternates").write_text("/etc\n")
        (alternates / "http-alternates").write_text(f"http://127.0.0.1:{other.port}/objects\n")
        refs = (repository.path / "info" / "refs").read_bytes()
        answer = (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        )

        def serve(visitor) -> None:
            visitor.recv(65536)
            visitor.sendall(answer % len(refs) + refs)

        with listening(treatment=serve) as dumb:
            found = await problem(git, f"http://127.0.0.1:{dumb.port}/dumb.git", {})
            assert found.reason == "GitNotFound" and not found.transient
            assert dumb.visits == 1
        assert other.visits == 0


@pytest.mark.parametrize("in_child", [False, True])
async def test_the_text_of_a_server_counts_as_no_limit_of_memory(git, in_child):
    body = b"001e# service=git-upload-pack\n00000015ERR out of memory"

    def serve(visitor) -> None:
        visitor.recv(65536)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n"
        visitor.sendall(head + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)

    with listening(treatment=serve) as broken:
        url = f"http://127.0.0.1:{broken.port}/x.git"
        if in_child:
            git._remember_long(url)
        found = await problem(git, url, {})
    assert (found.reason, found.transient) == ("Unreachable", True)


async def test_listing_that_needs_too_much_memory_goes_on_in_a_child(git, server, monkeypatch):
    def list_in_thread(*_: object) -> RemoteHead:
        raise MemoryError

    sha = server.create("large").commit({"a": "1"}, "one")
    monkeypatch.setattr(git, "_list", list_in_thread)
    assert await git.head(Remote(server.url("large")), {}) == RemoteHead("HEAD", sha)


async def test_long_reference_list_is_read_in_a_child_up_to_a_limit(git, server):
    repository = server.create("long-list")
    sha = repository.commit({"a": "1"}, "one")

    def fill(count: int) -> None:
        lines = [f"{sha} refs/pull/{number:07d}/head\n" for number in range(count)]
        (repository.path / "packed-refs").write_text(
            "# pack-refs with: peeled fully-peeled sorted \n" + "".join(lines)
        )

    fill(100_000)
    remote = Remote(server.url("long-list"))
    assert await git.head(remote, {"branch": "main"}) == RemoteHead("refs/heads/main", sha)
    assert remote.url in git._long_urls
    assert (await git.commit(remote, RemoteHead("refs/heads/main", sha), "")).subject == "one"
    fill(300_000)
    found = await problem(git, remote.url, {})
    assert found.reason == "TooManyRefs" and "16 MiB" in found.message


async def test_slow_host_delays_no_other(git, server):
    """Neither by http nor by ssh, neither in looking nor in fetching."""
    sha = server.create("quick").commit({"a": "1"}, "one")
    quick, over = Remote(server.url("quick")), threading.Event()
    with (
        listening(treatment=lambda visitor: over.wait(120)) as http,
        listening(treatment=lambda _: over.wait(120)) as ssh,
    ):
        slow = [Remote(f"http://127.0.0.1:{http.port}/x"), Remote(f"ssh://127.0.0.1:{ssh.port}/x")]
        waiting = [asyncio.create_task(git.head(remote, {})) for remote in slow for _ in range(40)]
        waiting += [asyncio.create_task(git.commit(slow[0], RemoteHead(sha, sha), "")) for _ in range(3)]
        while http.visits < MAX_LISTINGS_PER_HOST + 1 or not ssh.visits:
            await asyncio.sleep(0.01)
        assert await git.head(quick, {}) == RemoteHead("HEAD", sha)
        assert (await git.commit(quick, RemoteHead(sha, sha), "")).subject == "one"
        assert not any(task.done() for task in waiting)
        for task in waiting:
            task.cancel()
        over.set()
        await asyncio.gather(*waiting, return_exceptions=True)
