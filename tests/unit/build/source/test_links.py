"""Symbolic links of a commit become copies of their targets in the tree."""

import io
from pathlib import Path

import pygit2
import pytest

from build.logs import BuildLog
from build.settings import GitSource, SourceLimits
from build.source.git_tree import read_tree
from build.source.tree import CheckedSourceTree

FILE, PROGRAM, LINK = b"100644", b"100755", b"120000"


def read(
    directory: Path, *entries: tuple[bytes, bytes, bytes], out: io.StringIO | None = None
) -> CheckedSourceTree:
    """Return the tree of a commit with these (name, mode, content) in its root."""
    repository = pygit2.init_repository(str(directory), bare=True)
    tree_bytes = b"".join(
        mode + b" " + name + b"\0" + repository.create_blob(content).raw
        for name, mode, content in sorted(entries)
    )
    tree = repository.odb.write(pygit2.enums.ObjectType.TREE, tree_bytes)
    author = pygit2.Signature("a", "a@example.org", 1, 0)
    commit = repository.create_commit(None, author, author, "First", tree, [])
    source = GitSource("https://git.example.org/x", str(commit))
    return read_tree(repository, source, SourceLimits(), BuildLog(out=out or io.StringIO()))


def test_link_to_an_executable_is_executable(tmp_path: Path) -> None:
    tree = read(tmp_path, (b"tool", PROGRAM, b"#!/bin/sh\n"), (b"again", LINK, b"tool"))
    assert tree["again"] == b"#!/bin/sh\n"
    assert tree.entry("again").executable


def test_target_may_start_with_dots(tmp_path: Path) -> None:
    assert read(tmp_path, (b"..data", FILE, b"x"), (b"a", LINK, b"./..data"))["a"] == b"x"


@pytest.mark.parametrize(
    "target", [b"..", b"../x", b"/etc/passwd", b"", b".", b"missing", b"self", b"\0", b"./" * 2048 + b"file"]
)
def test_link_without_target_file_is_left_out(tmp_path: Path, target: bytes) -> None:
    out = io.StringIO()
    assert sorted(read(tmp_path, (b"file", FILE, b"x"), (b"self", LINK, target), out=out)) == ["file"]
    assert "self is a symbolic link that does not point to a file" in out.getvalue()


@pytest.mark.parametrize(
    ("links", "paths"),
    [
        ({"current": "versions/v2", "config": "current/config"}, {"config", "current/config"}),
        (
            {"current": "latest", "latest": "versions/v2", "config": "current/config"},
            {"config", "current/config", "latest/config"},
        ),
        ({"current": "versions", "again": "current/v2"}, {"again/config", "current/v2/config"}),
        ({"one": "two/x", "two": "one"}, set()),
        ({"one": "two/x", "two": "one/y"}, set()),
        ({"one": "versions/v2/config/x"}, set()),
        ({"out": "..", "one": "out/file"}, set()),
    ],
)
def test_a_link_may_lead_through_a_linked_directory(
    tmp_path: Path, links: dict[str, str], paths: set[str]
) -> None:
    repository = pygit2.init_repository(str(tmp_path), bare=True)
    index = pygit2.Index()
    modes = pygit2.enums.FileMode
    index.add(pygit2.IndexEntry("versions/v2/config", repository.create_blob(b"x"), modes.BLOB))
    for name, target in links.items():
        index.add(pygit2.IndexEntry(name, repository.create_blob(target.encode()), modes.LINK))
    author = pygit2.Signature("a", "a@example.org", 1, 0)
    commit = repository.create_commit(None, author, author, "First", index.write_tree(repository), [])
    source = GitSource("https://git.example.org/x", str(commit))
    tree = read_tree(repository, source, SourceLimits(), BuildLog(out=io.StringIO()))
    assert dict(tree) == dict.fromkeys({"versions/v2/config", *paths}, b"x")
