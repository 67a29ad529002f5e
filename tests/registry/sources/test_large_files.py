"""Files of Git LFS: of the repository's server, with its credentials, within the limits."""

import io
from pathlib import Path

import pytest

from build.errors import InfrastructureError
from build.logs import BuildLog
from build.settings import FetchNetworks, GitSource, SourceLimits
from build.source.fetch_git import fetch_git
from egress.git.credentials import GitCredentials
from tests.testbed.git_server import GitServer, Repository

HERE = FetchNetworks(("127.0.0.0/8",))


def fetch(
    source: GitSource, credentials: GitCredentials | None = None, network: FetchNetworks = HERE, **limits: int
) -> tuple[dict[str, bytes], str]:
    """Return the files and the log."""
    out = io.StringIO()
    access = credentials or GitCredentials()
    fetched = fetch_git(source, access, network, SourceLimits(**limits), BuildLog(out=out))
    return dict(fetched.tree), out.getvalue()


def test_files_come_from_the_server_of_the_repository(git: GitServer, demo: Repository) -> None:
    git.username, git.password = "crew", "right"
    model, empty = git.pointer(b"model" * 100_000), git.pointer(b"")
    files = {"data/model.bin": model, "copy.bin": model, "empty.bin": empty, "main.py": "1"}
    source = GitSource(git.url("demo"), demo.commit(files, "one", executable=("copy.bin",)))
    tree, log = fetch(source, GitCredentials("crew", "right"))
    assert tree == {
        "data/model.bin": b"model" * 100_000,
        "copy.bin": b"model" * 100_000,
        "empty.bin": b"",
        "main.py": b"1",
    }
    assert "pointer" not in log
    assert sum("/large/" in line for line in git.requests) == 2


def test_file_of_a_submodule_comes_from_its_server(git: GitServer, demo: Repository) -> None:
    sha = git.create("x").commit({"x.bin": git.pointer(b"large")}, "x")
    modules = '[submodule "x"]\n\tpath = x\n\turl = ../x.git\n'
    head = demo.commit({".gitmodules": modules}, "one", submodules={"x": sha})
    assert fetch(GitSource(git.url("demo"), head))[0]["x/x.bin"] == b"large"
    assert "POST /x.git/info/lfs/objects/batch" in git.requests


def test_missing_file_stays_a_pointer_and_the_log_names_it(git: GitServer, demo: Repository) -> None:
    pointer = git.pointer(b"gone")
    git.large_files.clear()
    source = GitSource(git.url("demo"), demo.commit({"a.bin": pointer, "b.txt": "1"}, "one"))
    tree, log = fetch(source)
    assert tree["a.bin"].decode() == pointer
    assert "a.bin stays a pointer of Git LFS: the server answers 404 Object does not exist" in log


def test_changed_file_is_not_taken(git: GitServer, demo: Repository) -> None:
    pointer = git.pointer(b"right")
    for content in (b"wrong", b"longer than right"):
        git.large_files = dict.fromkeys(git.large_files, content)
        source = GitSource(git.url("demo"), demo.commit({"a.bin": pointer}, "one"))
        tree, log = fetch(source)
        assert tree["a.bin"].decode() == pointer
        assert "sends another file than the pointer names" in log


def test_file_that_ends_early_is_tried_again(git: GitServer, demo: Repository) -> None:
    pointer = git.pointer(b"right")
    git.large_files = dict.fromkeys(git.large_files, b"rig")
    with pytest.raises(InfrastructureError, match="3 of 5 bytes"):
        fetch(GitSource(git.url("demo"), demo.commit({"a.bin": pointer}, "one")))
    assert sum("/large/" in line for line in git.requests) == 3


def test_larger_than_the_limit(git: GitServer, demo: Repository) -> None:
    files = {"a.bin": git.pointer(b"a" * 60_000), "b.bin": git.pointer(b"b" * 60_000)}
    tree, log = fetch(GitSource(git.url("demo"), demo.commit(files, "one")), context_bytes=100_000)
    assert len(tree["a.bin"]) == 60_000 and tree["b.bin"].decode() == files["b.bin"]
    assert "b.bin stays a pointer of Git LFS: its 60000 bytes exceed what is left of context_bytes" in log


@pytest.mark.parametrize("pattern", ["data", "data/*", "*.bin, *.mp4", "/none, data/**"])
def test_file_that_the_repository_excludes(git: GitServer, demo: Repository, pattern: str) -> None:
    files = {"data/a.bin": git.pointer(b"1"), ".lfsconfig": f"[lfs]\n\tfetchexclude = {pattern}\n"}
    tree, log = fetch(GitSource(git.url("demo"), demo.commit(files, "one")))
    assert tree["data/a.bin"].decode() == files["data/a.bin"]
    assert "excluded by lfs.fetchexclude" in log


def test_another_server_gets_no_credentials(git: GitServer, demo: Repository, tmp_path: Path) -> None:
    git.username, git.password = "crew", "right"
    right = GitCredentials("crew", "right")
    with GitServer(tmp_path / "other", username="crew", password="right") as other:
        pointer = other.pointer(b"there")
        git.large_files, git.large_files_url = dict(other.large_files), f"http://127.0.0.1:{other.port}"
        source = GitSource(git.url("demo"), demo.commit({"a.bin": pointer}, "one"))
        tree, log = fetch(source, right)
        assert tree["a.bin"].decode() == pointer and "answers 401" in log
        other.username = other.password = ""
        assert fetch(source, right)[0]["a.bin"] == b"there"
        own = {"a.bin": pointer, ".lfsconfig": f"[lfs]\n\turl = {other.url('x')}/info/lfs\n"}
        git.large_files.clear()
        source = GitSource(git.url("demo"), demo.commit(own, "two"))
        assert fetch(source, right)[0]["a.bin"] == b"there"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://169.254.169.254/lfs", "169.254.169.254 is a link-local address"),
        ("file:///etc", "only https://"),
        ("ssh://127.0.0.1/x", "not a plain http or https URL"),
        ("http://crew:hunter2@127.0.0.1/x", "contains a user or password"),
    ],
)
def test_hostile_server_of_the_lfsconfig(git: GitServer, demo: Repository, url: str, problem: str) -> None:
    files = {"a.bin": git.pointer(b"1"), ".lfsconfig": f"[lfs]\n\turl = {url}\n"}
    tree, log = fetch(GitSource(git.url("demo"), demo.commit(files, "one")))
    assert tree["a.bin"].decode() == files["a.bin"]
    assert problem in log and "hunter2" not in log


@pytest.mark.parametrize("href", ["file:///etc", "http://169.254.169.254", "http://127.0.0.1\r\nX: 1"])
def test_hostile_answer_of_the_server(git: GitServer, demo: Repository, href: str) -> None:
    pointer = git.pointer(b"1")
    git.large_files_url = href
    tree, log = fetch(GitSource(git.url("demo"), demo.commit({"a.bin": pointer}, "one")))
    assert tree["a.bin"].decode() == pointer
    assert "a.bin stays a pointer" in log


def test_unavailable_server_fails_the_build(git: GitServer, demo: Repository) -> None:
    files = {"a.bin": git.pointer(b"1"), ".lfsconfig": "[lfs]\n\turl = http://127.0.0.1:9/x\n"}
    with pytest.raises(InfrastructureError, match="git LFS"):
        fetch(GitSource(git.url("demo"), demo.commit(files, "one")))
