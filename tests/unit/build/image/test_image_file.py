"""Image files of a hostile container: reading is bounded, follows no link and extracts nothing."""

import io
import json
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.image.image_file import ImageFile, ImageFileInvalid

CONFIG = json.dumps({"rootfs": {"diff_ids": ["sha256:1"]}}).encode()
INDEX = json.dumps([{"Config": "sha256:c", "RepoTags": ["x"], "Layers": ["l.tar.gz"]}]).encode()
GOOD = [("sha256:c", CONFIG), ("l.tar.gz", b"\x1f\x8blayer"), ("manifest.json", INDEX)]


def tar(*members: tuple[str, bytes] | tarfile.TarInfo) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                header = tarfile.TarInfo(member[0])
                header.size = len(member[1])
                archive.addfile(header, io.BytesIO(member[1]))
    return packed.getvalue()


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, target
    return header


def open_image(data: bytes) -> ImageFile:
    return ImageFile(io.BytesIO(data), len(data))


def test_valid_image() -> None:
    image = open_image(tar(*GOOD))
    assert image.index() == (CONFIG, ["l.tar.gz"])
    content = image.member("l.tar.gz")
    assert content.read() == b"\x1f\x8blayer"
    content.seek(2)
    assert content.read(3) == b"lay"
    assert image.size("l.tar.gz") == 7


DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x" * 2000,
        tar(*GOOD)[:700],
        tar(*GOOD[:2]),
        tar(link("manifest.json", "/proc/self/environ"), *GOOD[:2]),
        tar(link("l.tar.gz", "/etc/passwd"), GOOD[0], GOOD[2]),
        tar(link("l.tar.gz", "manifest.json", tarfile.LNKTYPE), GOOD[0], GOOD[2]),
        tar(*GOOD, GOOD[0]),
        tar(*[(f"m{number}", b"") for number in range(400)], *GOOD),
        tar(GOOD[0], GOOD[1], ("manifest.json", b" " * (5 << 20))),
        tar(GOOD[0], GOOD[1], ("manifest.json", b"[]")),
        tar(GOOD[0], GOOD[1], ("manifest.json", b'[{"Config": 3}]')),
        tar(GOOD[0], GOOD[1], ("manifest.json", DEEP)),
        tar(("sha256:c", b"[]"), *GOOD[1:]),
        tar(("sha256:c", b'{"rootfs": {"diff_ids": []}}'), *GOOD[1:]),
    ],
)
def test_invalid_image_is_refused(data: bytes) -> None:
    with pytest.raises(ImageFileInvalid):
        image = open_image(data)
        for name in image.index()[1]:
            image.member(name)


@settings(deadline=None)
@given(st.data())
def test_damaged_image(data: st.DataObject) -> None:
    content = bytearray(tar(*GOOD))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        image = open_image(bytes(content))
        for name in image.index()[1]:
            assert len(image.member(name).read()) <= len(content)
    except ImageFileInvalid:
        pass
