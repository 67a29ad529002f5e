"""The image uses the host's Debian sources and no others."""

import zipfile
from pathlib import Path

import pytest

from dev.errors import DevClusterError
from dev.images import base_image, cpython_jar

DEB822 = """Types: deb
URIs: http://mirror.example.org/debian
Suites: trixie trixie-updates trixie-backports
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: https://vendor.example.org/apt
Suites: trixie
Components: main
Signed-By: /usr/share/keyrings/vendor.gpg

Types: deb
Enabled: no
URIs: http://old.example.org/debian
Suites: trixie
Components: main
"""


def test_deb822_sources_become_lines_of_the_images_suite() -> None:
    assert base_image.parse_deb822(DEB822, "trixie", "bookworm") == [
        "deb http://mirror.example.org/debian bookworm main",
        "deb http://mirror.example.org/debian bookworm-updates main",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("deb http://m.example.org/debian bookworm main", ["deb http://m.example.org/debian bookworm main"]),
        (
            "deb http://m.example.org/s bookworm-security main",
            ["deb http://m.example.org/s bookworm-security main"],
        ),
        ("deb-src http://m.example.org/debian bookworm main", []),
        ("# deb http://m.example.org/debian bookworm main", []),
        ("deb http://m.example.org/debian bookworm contrib", []),
        ("deb http://m.example.org/debian bookworm-pgdg main", []),
        ("deb [signed-by=/usr/share/keyrings/vendor.gpg] http://v.example.org/apt bookworm main", []),
        (
            "deb [signed-by=/k/debian-archive.gpg arch=amd64] http://m.example.org/d bookworm main",
            ["deb http://m.example.org/d bookworm main"],
        ),
    ],
)
def test_one_line_sources(line: str, expected: list[str]) -> None:
    assert base_image.parse_one_line(line, "bookworm", "bookworm") == expected


def test_sources_are_collected_from_all_files_once(tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text("VERSION_CODENAME=trixie\n")
    (tmp_path / "apt" / "sources.list.d").mkdir(parents=True)
    (tmp_path / "apt" / "sources.list").write_text("deb http://mirror.example.org/debian trixie main\n")
    (tmp_path / "apt" / "sources.list.d" / "debian.sources").write_text(DEB822)
    (tmp_path / "apt" / "sources.list.d" / "vendor.list.disabled").write_text(
        "deb http://v.example.org trixie main\n"
    )
    assert base_image.sources("bookworm", tmp_path) == (
        "deb http://mirror.example.org/debian bookworm main\n"
        "deb http://mirror.example.org/debian bookworm-updates main\n"
    )


def test_without_a_source_the_error_names_the_directory(tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text("VERSION_CODENAME=bookworm\n")
    with pytest.raises(DevClusterError, match="bookworm main"):
        base_image.sources("bookworm", tmp_path)


def test_only_pip_settings_of_the_host_are_passed_on() -> None:
    config = base_image.config(
        {"PIP_INDEX_URL": "https://i.example.org/simple", "PIP_FIND_LINKS": "/x", "SECRET": "s"}
    )
    environment = config["Env"]
    assert isinstance(environment, list)
    assert "PIP_INDEX_URL=https://i.example.org/simple" in environment
    assert not [entry for entry in environment if "FIND_LINKS" in entry or "SECRET" in entry]
    assert "PIP_CERT=/etc/ssl/certs/ca-certificates.crt" in environment


def test_files_of_the_jar_have_the_layout_of_debian(tmp_path: Path) -> None:
    root = "org/bytedeco/cpython/linux-x86_64"
    members = [
        "bin/pip3",
        "bin/python3",
        "bin/python3.12",
        "include/python3.12/Python.h",
        "lib/pkgconfig/x.pc",
        "lib/python3.12/config-3.12/libpython3.12.a",
        "lib/python3.12/os.py",
        "lib/python3.12/test/test_os.py",
        "libffi.so",
        "libffi.so.7",
        "libjnipython.so",
        "libpython3.12.so.1.0",
        "python3.12",
    ]
    with zipfile.ZipFile(tmp_path / "c.jar", "w") as archive:
        for name in members:
            archive.writestr(f"{root}/{name}", name)
        archive.writestr("META-INF/MANIFEST.MF", "")
    files = cpython_jar.unpack(tmp_path / "c.jar", tmp_path / "out", "3.12")
    assert {name: file for name, file in files.items() if isinstance(file, str)} == {
        "usr/local/bin/python3": "python3.12",
        "usr/local/bin/python": "python3.12",
        "usr/local/bin/pip3": "pip",
    }
    regular = {name: file for name, file in files.items() if isinstance(file, Path)}
    assert regular.keys() == {
        "usr/local/bin/python3.12",
        "usr/local/bin/pip",
        "usr/local/lib/python3.12/os.py",
        "usr/local/include/python3.12/Python.h",
        "usr/lib/x86_64-linux-gnu/libpython3.12.so.1.0",
        "usr/lib/x86_64-linux-gnu/libffi.so.7",
    }
    executable = {name for name, file in regular.items() if file.stat().st_mode & 0o100}
    assert executable == {"usr/local/bin/python3.12", "usr/local/bin/pip"}
