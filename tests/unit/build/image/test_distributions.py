"""Distributions of hostile and ordinary layers: what is found, and that reading is bounded."""

import gzip
import io
import tarfile
import time

import pytest
import zstandard

from build.image import debian_packages, distributions
from build.image.distributions import LayerContent, installed, read_layer

SITE = "usr/local/lib/python3.11/site-packages"


def tar_of(files: dict[str, bytes]) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name, content in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return plain.getvalue()


def tar(*names: str, size: int = 0) -> bytes:
    return tar_of(dict.fromkeys(names, bytes(size)))


def read(data: bytes, seconds: float = 60.0, max_bytes: int = 1 << 30) -> LayerContent:
    return read_layer(io.BytesIO(data), time.monotonic() + seconds, max_bytes)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, bytes])
def test_metadata_is_found_in_each_compression(pack):
    names = (f"./{SITE}/Flask-3.1.0.dist-info/METADATA", "etc/passwd", f"{SITE}/flask/METADATA")
    layer = read(pack(tar(*names)))
    assert layer == LayerContent((f"{SITE}/Flask-3.1.0.dist-info",), (), True)


def test_names_and_versions():
    paths = ("a/Flask-3.1.0.dist-info", "a/PyYAML-5.3.1-py3.9.egg-info", "a/local.egg-info")
    found, _ = installed([LayerContent(paths, (), True)])
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
    assert [one.name for one in installed([lower, LayerContent((), (removed,), True)])[0]] == left
    # What the same layer adds stays.
    replaced, _ = installed([lower, LayerContent(("lib/c-1.dist-info",), (removed,), True)])
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


STATUS = b"""Package: libc6
Status: install ok installed
Architecture: amd64
Multi-Arch: same
Version: 2.36-9+deb12u10
Description: GNU C Library
 Version: 9 is a line of the description.

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1.0

Package: half
Status: install ok half-installed
Architecture: amd64
Version: 1.0

Package: perl-base
Status: install ok installed
Architecture: amd64
Version: 5.36.0-7+deb12u2

Package: bad name
Status: install ok installed
Architecture: amd64
Version: 1
"""
OS_RELEASE = b"""PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
VERSION_ID="12"
ID=debian
"""


def debian(*layers: LayerContent) -> list[tuple[str, str, str]]:
    return [(one.name, one.version, one.system) for one in installed(layers)[1]]


def test_debian_packages_of_the_uppermost_database_count():
    base = read(gzip.compress(tar_of({"./var/lib/dpkg/status": STATUS, "usr/lib/os-release": OS_RELEASE})))
    assert base.complete
    libc = ("libc6", "2.36-9+deb12u10", "debian-12")
    assert debian(base) == [libc, ("perl-base", "5.36.0-7+deb12u2", "debian-12")]
    git = STATUS.replace(b"perl-base", b"git").replace(b"5.36.0-7+deb12u2", b"1:2.39.5-0+deb12u2")
    upper = read(tar_of({"var/lib/dpkg/status": git}))
    assert debian(base, upper) == [libc, ("git", "1:2.39.5-0+deb12u2", "debian-12")]
    assert debian(base, read(tar("var/lib/.wh.dpkg"))) == []


def test_debian_packages_of_a_distroless_image():
    package = b"Package: tzdata\nVersion: 2025b-0+deb12u1\nArchitecture: all\n"
    names = {"var/lib/dpkg/status.d/tzdata": package, "var/lib/dpkg/status.d/tzdata.md5sums": package}
    assert debian(read(tar_of(names))) == [("tzdata", "2025b-0+deb12u1", "")]


def test_databases_of_debian_packages_are_bounded(monkeypatch):
    monkeypatch.setattr(distributions, "MAX_NAMES", 1)
    layer = read(tar_of({"var/lib/dpkg/status": STATUS, "var/lib/dpkg/status.d/x": STATUS}))
    assert (layer.databases, layer.complete) == (
        {
            "var/lib/dpkg/status": ("libc6 2.36-9+deb12u10 amd64",),
            "var/lib/dpkg/status.d/x": ("libc6 2.36-9+deb12u10 amd64",),
        },
        False,
    )
    monkeypatch.setattr(debian_packages, "MAX_DATABASE_BYTES", 100)
    assert read(tar_of({"var/lib/dpkg/status": STATUS})).complete is False
    assert read(tar_of({"var/lib/dpkg/status": b"\xff\0" * 40})).databases == {"var/lib/dpkg/status": ()}
