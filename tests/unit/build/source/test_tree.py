"""The checked tree and its layers."""

import io
import stat
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.errors import BuildRefused
from build.image.layers import LayerFile, code_files, excluded_files, make_layer
from build.settings import SourceLimits
from build.source.tree import CheckedSourceTree, TreeBuilder, checked_path
from plan.packages.dockerfile import CREW_ID

PARTS = st.text(
    st.characters(min_codepoint=33, blacklist_characters="/\\:\x7f", blacklist_categories=["Cs"]),
    min_size=1,
    max_size=8,
)
PATHS = st.lists(
    PARTS.filter(lambda part: part not in (".", "..") and not part.startswith(".wh.")), min_size=1, max_size=4
).map("/".join)


def tree_of(files: dict[str, bytes]) -> CheckedSourceTree:
    builder = TreeBuilder(SourceLimits())
    for path, data in files.items():
        builder.add(path, io.BytesIO(data), False)
    return builder.finish()


@given(st.text(max_size=40))
def test_path_is_normalized_or_refused(name: str) -> None:
    try:
        path = checked_path(name)
    except BuildRefused as error:
        assert error.reason == "ContextInvalid"
        return
    assert not path.startswith("/")
    assert not {"", ".", ".."} & set(path.split("/")) or path == ""
    assert checked_path(path) == path


@given(PATHS)
def test_ordinary_paths_are_unchanged(path: str) -> None:
    assert checked_path(path) == path
    assert checked_path(f"./{path}/") == path


@given(
    st.dictionaries(st.sampled_from(["a", "b/c", "b/d", "e/f/g", "ü.py"]), st.binary(max_size=50), min_size=1)
)
def test_tree_returns_the_bytes(files: dict[str, bytes]) -> None:
    tree = tree_of(files)
    assert dict(tree) == files
    assert list(tree) == sorted(files)
    assert tree.bytes == sum(map(len, files.values()))


def test_hash_covers_paths_bytes_and_modes() -> None:
    plain = tree_of({"a": b"1"})
    executable = TreeBuilder(SourceLimits())
    executable.add("a", io.BytesIO(b"1"), True)
    others = [tree_of({"b": b"1"}), tree_of({"a": b"2"}), executable.finish()]
    assert len({plain.hash, *(other.hash for other in others)}) == 4
    assert tree_of({"a": b"1"}).hash == plain.hash


def test_layer_is_reproducible() -> None:
    files = [LayerFile("app/a.py", b"1"), LayerFile("app/b/c.py", b"2", True)]
    first, second = make_layer(files, ("app",)), make_layer(files, ("app",))
    assert (first.digest, first.diff_id, first.size) == (second.digest, second.diff_id, second.size)
    assert first.content.read() == second.content.read()


def test_metadata_in_layers() -> None:
    layer = make_layer([LayerFile("app/a.py", b"1"), LayerFile("app/b/c.py", b"22", True)], ("app",))
    with tarfile.open(fileobj=layer.content, mode="r:gz") as archive:
        members = archive.getmembers()
    assert [(m.name, m.mode, m.isdir()) for m in members] == [
        ("app/a.py", 0o644, False),
        ("app/b", 0o755, True),
        ("app/b/c.py", 0o755, False),
    ]
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members} == {(0, 0, "", "", 0)}
    assert not any(m.mode & (stat.S_IWGRP | stat.S_IWOTH) for m in members)


def test_artifacts_directory_is_excluded() -> None:
    tree = tree_of({"artifacts/old.md": b"", "artifacts_too.py": b"", "main.py": b""})
    assert [file.path for file in code_files(tree, [])] == ["app/artifacts_too.py", "app/main.py"]
    assert excluded_files(tree) == ["artifacts/old.md"]


@pytest.mark.parametrize("order", [["a", "b/c"], ["b/c", "a"]])
def test_order_of_entries_does_not_matter(order: list[str]) -> None:
    tree = tree_of({path: path.encode() for path in order})
    assert (
        make_layer(code_files(tree, []), ("app",)).digest
        == make_layer(
            [LayerFile("app/a", b"a", owner=CREW_ID), LayerFile("app/b/c", b"b/c", owner=CREW_ID)], ("app",)
        ).digest
    )
