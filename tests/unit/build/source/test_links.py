"""Symbolic links of a commit become copies of what they lead to, and nothing else."""

from pathlib import Path

import pygit2
import pytest

from build.errors import Refused
from build.logs import Log
from build.settings import GitSource, Limits
from build.source.git_tree import read_tree
from build.source.tree import SourceTree

FILE, PROGRAM, LINK = b"100644", b"100755", b"120000"


def read(place: Path, *entries: tuple[bytes, bytes, bytes]) -> SourceTree:
    """The tree of a commit whose root has these (name, mode, content)."""
    repository = pygit2.init_repository(str(place), bare=True)
    listed = b"".join(
        mode + b" " + name + b"\0" + repository.create_blob(content).raw
        for name, mode, content in sorted(entries)
    )
    tree = repository.odb.write(pygit2.enums.ObjectType.TREE, listed)
    somebody = pygit2.Signature("a", "a@example.org", 1, 0)
    commit = repository.create_commit(None, somebody, somebody, "First", tree, [])
    return read_tree(repository, GitSource("https://git.example.org/x", str(commit)), Limits(), Log())


def test_a_link_to_a_program_is_a_program(tmp_path: Path) -> None:
    tree = read(tmp_path, (b"tool", PROGRAM, b"#!/bin/sh\n"), (b"again", LINK, b"tool"))
    assert tree["again"] == b"#!/bin/sh\n"
    assert tree.entry("again").executable


def test_a_name_may_begin_with_dots(tmp_path: Path) -> None:
    assert read(tmp_path, (b"..data", FILE, b"x"), (b"a", LINK, b"./..data"))["a"] == b"x"


@pytest.mark.parametrize(
    "target", [b"..", b"../x", b"/etc/passwd", b"", b".", b"missing", b"self", b"\0", b"./" * 2048 + b"file"]
)
def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path, target: bytes) -> None:
    with pytest.raises(Refused, match="self is a symbolic link that leads to no file"):
        read(tmp_path, (b"file", FILE, b"x"), (b"self", LINK, target))
