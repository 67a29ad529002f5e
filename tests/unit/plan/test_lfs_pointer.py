"""Pointers of Git LFS are recognized, and named where the crew would get them."""

import pytest

from plan.lfs_pointer import LfsPointer, pointer_notes, read_pointer

OID = "0123456789abcdef" * 4
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 12345\n".encode()


@pytest.mark.parametrize(
    ("data", "pointer"),
    [
        (POINTER, LfsPointer(OID, 12345)),
        (POINTER + b"x", None),
        (b"\n" + POINTER, None),
        (POINTER.replace(b"sha256:0", b"sha256:"), None),
        (POINTER.replace(b"12345", b"-1"), None),
        (b"", None),
    ],
)
def test_only_a_whole_pointer_is_read(data: bytes, pointer: LfsPointer | None) -> None:
    assert read_pointer(data) == pointer


@pytest.mark.parametrize(
    ("pointers", "notes"),
    [
        ([], []),
        (["a"], ["a is a pointer of Git LFS: the crew gets the pointer instead of the file"]),
        (["a", "b"], ["a, b are pointers of Git LFS: the crew gets the pointer instead of the file"]),
    ],
)
def test_note_names_each_pointer_once(pointers: list[str], notes: list[str]) -> None:
    files = {**dict.fromkeys(pointers, POINTER), "text": b"no pointer", "large": POINTER}
    assert pointer_notes(files, lambda path: 1025 if path == "large" else 1024) == notes
