"""The checked tree and its layers."""

import hashlib
import io
import stat
import tarfile
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.errors import BuildRefused
from build.image.layers import LayerFile, code_files, excluded_files, make_layer
from build.settings import SourceLimits
from build.source import tree as source_tree
from build.source.tree import CheckedSourceTree, TreeBuilder, TreeEntry, checked_path
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


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("", ""),
        (".", ""),
        ("./a//b/", "a/b"),
        ("...", "..."),
        ("ab:c", "ab:c"),
        (" ~\ud7ff\ue000", " ~\ud7ff\ue000"),
        ("n" * 255, "n" * 255),
        ("ü" * 127 + "n", "ü" * 127 + "n"),
        ("./" * 2047 + "a", "a"),
        ("d/" * 99 + "a", "d/" * 99 + "a"),
        ("a.wh./.wh", "a.wh./.wh"),
    ],
)
def test_accepted_paths(name: str, path: str) -> None:
    assert checked_path(name) == path


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("/a", "absolute"),
        ("a\\b", "absolute"),
        ("C:a", "absolute"),
        ("..", "leaves"),
        ("a/../b", "leaves"),
        ("a\x1f", "control characters"),
        ("a\x7f", "control characters"),
        ("a\ud800", "not UTF-8"),
        ("a\udfff", "not UTF-8"),
        ("n" * 256, "too long"),
        ("ü" * 128, "too long"),
        ("./" * 2047 + "aa", "too long"),
        ("d/" * 100 + "a", "100 levels"),
        ("a/.wh.b", "deletions"),
    ],
)
def test_refused_paths(name: str, problem: str) -> None:
    with pytest.raises(BuildRefused) as raised:
        checked_path(name)
    error = raised.value
    assert error.reason == "ContextInvalid" and problem in error.message and error.hint
    assert error.message.isprintable() and len(error.message) < 400


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


def test_parts_of_a_tree() -> None:
    files = {"a": b"1", "lib/x": b"22", "lib/y/z": b"333", "library/x": b""}
    tree = tree_of(files)
    assert tree.without([]) is tree
    assert dict(tree.without(["a", "lib/x", "missing"])) == {"lib/y/z": b"333", "library/x": b""}
    assert dict(tree.only(["lib/x", "a"])) == {"a": b"1", "lib/x": b"22"}
    assert dict(tree.below("lib")) == {"x": b"22", "y/z": b"333"}
    assert tree.below("lib").hash == tree_of({"x": b"22", "y/z": b"333"}).hash
    assert (len(tree), "lib/x" in tree, "lib" in tree, tree.bytes) == (4, True, False, 6)


def test_entry_of_a_file() -> None:
    builder = TreeBuilder(SourceLimits())
    assert builder.add("./a", io.BytesIO(b"1" * 300_000), True) == "a"
    builder.add("b", io.BytesIO(b"22"), False)
    tree = builder.finish()
    assert [tree.entry(path) for path in tree] == [
        TreeEntry(0, 300_000, hashlib.sha256(b"1" * 300_000).hexdigest(), True),
        TreeEntry(300_000, 2, hashlib.sha256(b"22").hexdigest(), False),
    ]
    with pytest.raises(KeyError):
        tree.entry("c")


def refusal(work: Callable[[], object]) -> tuple[str, str]:
    """Return reason and message of the refusal."""
    with pytest.raises(BuildRefused) as raised:
        work()
    assert raised.value.message.isprintable() and raised.value.hint
    return raised.value.reason, raised.value.message


def test_number_of_entries_is_limited() -> None:
    builder = TreeBuilder(SourceLimits(entries=2))
    builder.count_entry()
    builder.count_entry()
    assert refusal(builder.count_entry) == ("ContextTooLarge", "the source has more than 2 entries")


def test_number_of_directories_is_limited() -> None:
    builder = TreeBuilder(SourceLimits(entries=3))
    builder.add_directory("a/b")
    builder.add_directory("a/b/")
    builder.add("a/b/c/file", io.BytesIO(b""), False)
    assert refusal(lambda: builder.add_directory("d")) == (
        "ContextTooLarge",
        "the source has more than 3 directories",
    )


def test_number_of_bytes_is_limited() -> None:
    size = 300_000
    builder = TreeBuilder(SourceLimits(unpacked_bytes=2 * size))
    builder.add("a", io.BytesIO(bytes(size)), False)
    too_large = ("ContextTooLarge", "the source unpacks to more than 600000 bytes")
    builder.check_room(size)
    assert refusal(lambda: builder.check_room(size + 1)) == too_large
    # What a header says is not what counts.
    assert refusal(lambda: builder.add("b", io.BytesIO(bytes(size + 1)), False)) == too_large
    builder.add("c", io.BytesIO(bytes(size)), False)
    assert refusal(lambda: builder.add("d", io.BytesIO(b"1"), False)) == too_large


def test_total_length_of_paths_is_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_tree, "_MAX_TOTAL_NAME_BYTES", 12)
    builder = TreeBuilder(SourceLimits())
    builder.add("dir/ü", io.BytesIO(b""), False)
    builder.add_directory("abc")
    for add in (lambda: builder.add("x", io.BytesIO(b""), False), lambda: builder.add_directory("x")):
        reason, message = refusal(add)
        assert reason == "ContextTooLarge" and "too long in total" in message


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["a\u202e", "./a\u202e"], "a\N{REPLACEMENT CHARACTER} is in the source twice"),
        (["a/b/c", "a/b"], "a/b is in the source twice"),
        (["a\u202e", "a\u202e/b/c"], "a\N{REPLACEMENT CHARACTER} is both a file and a directory"),
        (["a", "a/"], "a is both a file and a directory"),
        (["./"], "a file without a name ('./')"),
    ],
)
def test_contradicting_paths(names: list[str], problem: str) -> None:
    builder = TreeBuilder(SourceLimits())
    *first, last = names
    for name in first:
        builder.add(name, io.BytesIO(b""), False)
    is_directory = last.endswith("/") and first
    add = builder.add_directory if is_directory else lambda name: builder.add(name, io.BytesIO(b""), False)
    reason, message = refusal(lambda: add(last))
    assert reason == "ContextInvalid" and problem in message


def test_directories_may_be_named_twice_and_be_empty() -> None:
    builder = TreeBuilder(SourceLimits())
    for name in ("", "./", "a", "a/", "a/b"):
        builder.add_directory(name)
    assert refusal(builder.finish) == ("ContextInvalid", "the source has no files")
    builder.add("a/b/c", io.BytesIO(b"1"), False)
    assert dict(builder.finish()) == {"a/b/c": b"1"}


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
