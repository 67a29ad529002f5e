"""The image uses the host's Debian sources and no others."""

from pathlib import Path

import pytest

from dev.errors import DevClusterError
from dev.images import base_image

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
