"""Distributions of hostile and ordinary layers: what is found, and that reading is bounded."""

import gzip
import io
import tarfile
import time

import pytest
import zstandard

from build.image import distributions
from build.image.distributions import LayerContent, installed, read_layer

SITE = "usr/local/lib/python3.11/site-packages"


def tar(*names: str, size: int = 0) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name in names:
            header = tarfile.TarInfo(name)
            header.size = size
            archive.addfile(header, io.BytesIO(bytes(size)))
    return plain.getvalue()


def read(data: bytes, seconds: float = 60.0, max_bytes: int = 1 << 30) -> LayerContent:
    return read_layer(io.BytesIO(data), time.monotonic() + seconds, max_bytes)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, bytes])
def test_metadata_is_found_in_each_compression(pack):
    names = (f"./{SITE}/Flask-3.1.0.dist-info/METADATA", "etc/passwd", f"{SITE}/flask/METADATA")
    layer = read(pack(tar(*names)))
    assert layer == LayerContent((f"{SITE}/Flask-3.1.0.dist-info",), (), True)


def test_names_and_versions():
    paths = ("a/Flask-3.1.0.dist-info", "a/PyYAML-5.3.1-py3.9.egg-info", "a/local.egg-info")
    found = installed([LayerContent(paths, (), True)])
    assert [(one.normalized, one.version) for one in found] == [
        ("flask", "3.1.0"),
        ("pyyaml", "5.3.1"),
        ("local", ""),
    ]


@pytest.mark.parametrize(
    ("removed", "left"),
    [
        ("lib/a-1.dist-info", ["b"]),
        ("lib", []),
        ("lib/", []),
        ("lib/a", ["a", "b"]),
        ("other", ["a", "b"]),
    ],
)
def test_upper_layers_remove_what_lower_layers_have(removed, left):
    lower = LayerContent(("lib/a-1.dist-info", "lib/b-1.dist-info"), (), True)
    assert [one.name for one in installed([lower, LayerContent((), (removed,), True)])] == left
    # What the same layer adds stays.
    replaced = installed([lower, LayerContent(("lib/c-1.dist-info",), (removed,), True)])
    assert [one.name for one in replaced] == [*left, "c"]


def test_whiteouts_are_read():
    layer = read(tar("lib/.wh.a-1.dist-info", "opt/.wh..wh..opq"))
    assert layer.removed == ("lib/a-1.dist-info", "opt/")


@pytest.mark.parametrize(
    "data",
    [
        b"not a layer" * 100,
        b"",
        tar("x")[:512],
        gzip.compress(tar("a/b-1.dist-info/METADATA"))[:-20],
        zstandard.compress(tar("x", size=4096))[:-5],
        b"\x1f\x8b" + bytes(50),
        b"\x28\xb5\x2f\xfd" + bytes(50),
    ],
    ids=["text", "nothing", "no end", "cut gzip", "cut zstd", "bad gzip", "bad zstd"],
)
def test_broken_layers_are_incomplete(data):
    assert read(data).complete is False


def test_bytes_time_and_names_are_bounded(monkeypatch):
    bomb = gzip.compress(tar("a/b-1.dist-info/METADATA", "big", size=8 << 20))
    assert read(bomb, max_bytes=4 << 20).complete is False
    assert read(bomb, seconds=-1.0).complete is False
    monkeypatch.setattr(distributions, "MAX_NAMES", 3)
    many = read(tar(*(f"a/p{number}-1.dist-info/METADATA" for number in range(10))))
    assert (len(many.added), many.complete) == (3, False)


def test_bytes_that_are_no_text_are_replaced():
    plain = tar("a/x\udce4-1.dist-info/METADATA")
    (path,) = read(plain).added
    assert path.encode()
