"""Trees that git itself would not write: plain paths come out of them, or a refusal."""

import io
from pathlib import Path

import pygit2
import pytest

from build.errors import Refused
from build.logs import Log
from build.settings import GitSource, Limits
from build.source.git_tree import read_tree
from build.source.tree import SourceTree
from tests.testbed.git_server import GitServer, Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return GitServer.repository(tmp_path, "demo")


def raw_tree(repository: Repository, *entries: tuple[str, bytes, str]) -> str:
    """A tree of modes, names and object ids, whatever they are."""
    data = b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(sha) for mode, name, sha in entries)
    return repository._git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", data=data)


def read(repository: Repository, tree: str, out: io.StringIO | None = None, path: str = "") -> SourceTree:
    sha = repository._git("commit-tree", tree, data=b"odd")
    source = GitSource("https://git.example.org/x", sha, path)
    return read_tree(
        pygit2.Repository(str(repository.path)), source, Limits(entries=2000), Log(out=out or io.StringIO())
    )


def refusal(repository: Repository, tree: str) -> Refused:
    with pytest.raises(Refused) as raised:
        read(repository, tree)
    assert raised.value.message.isprintable() and raised.value.hint
    return raised.value


NAMES = [
    *(
        b"..",
        b".",
        b"a/b",
        b"a/../../b",
        b"/etc/passwd",
        b"a\nb",
        b"a\x1b[31m",
        b"\xff\xfe",
        b"a\\b",
        b"C:x",
        b"x" * 300,
    ),
    *(
        b".wh.a",
        b"",
        b"a\x7f",
        b"a\xe2\x80\xaeb",
        b"-x",
        b".git",
        b".GIT",
        b"git~1",
        b"main.py",
        b"$(touch x)",
    ),
]


@pytest.mark.parametrize("mode", ["100644", "40000", "160000", "120000", "100777", "140000"])
def test_names_that_no_file_should_have(repository, mode):
    good = repository.commit({"main.py": "1"}, "one")
    blob, tree = repository._git("rev-parse", f"{good}:main.py", f"{good}^{{tree}}").split()
    inner = {"40000": tree, "160000": good}.get(mode, blob)
    for name in NAMES:
        out = io.StringIO()
        try:
            found = read(
                repository, raw_tree(repository, (mode, name, inner), ("100644", b"z.py", blob)), out
            )
            assert all(".." not in path.split("/") and not path.startswith("/") for path in found), name
        except Refused as error:
            assert error.message.isprintable() and error.hint, name
        assert all(line.isprintable() for line in out.getvalue().splitlines()), name


def test_a_tree_that_multiplies_ends_with_the_entries(repository):
    sha = repository._git("rev-parse", repository.commit({"main.py": "1"}, "one") + ":main.py")
    sha = raw_tree(repository, ("100644", b"a", sha))
    for _ in range(12):
        sha = raw_tree(repository, *[("40000", f"{number:02d}".encode(), sha) for number in range(10)])
    assert refusal(repository, sha).reason == "ContextTooLarge"


def test_a_tree_that_goes_down_for_ever_ends_with_the_levels(repository):
    sha = repository._git("rev-parse", repository.commit({"main.py": "1"}, "one") + ":main.py")
    sha = raw_tree(repository, ("100644", b"a", sha))
    for _ in range(101):
        sha = raw_tree(repository, ("40000", b"d", sha))
    error = refusal(repository, sha)
    assert error.reason == "ContextInvalid" and "100 levels" in error.message


@pytest.mark.parametrize(("mode", "name"), [("100644", b"main.py"), ("40000", b"d"), ("120000", b"link")])
def test_a_commit_whose_files_are_missing_is_damaged(repository, mode, name):
    error = refusal(repository, raw_tree(repository, (mode, name, "1" * 40)))
    assert error.reason == "ContextInvalid" and "damaged" in error.message and "git fsck" in error.hint
