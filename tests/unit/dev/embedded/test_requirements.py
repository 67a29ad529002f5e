"""One message lists everything that a machine lacks."""

import socket

import pytest

from dev.embedded.requirements import MachineFacts, check_port, is_debian, message, parse_go_version
from dev.errors import DevClusterError
from dev.settings import LOOPBACK

GOOD = MachineFacts(debian=True, root=True, go=(1, 26), architecture="x86_64")


def test_a_good_machine_has_no_message() -> None:
    assert message(GOOD) is None
    assert message(MachineFacts(debian=True, root=True, go=(2, 0), architecture="aarch64")) is None


def test_everything_missing_is_named_together() -> None:
    text = message(MachineFacts(debian=False, root=False, go=None, architecture="riscv64"))
    assert text is not None
    for word in ("Debian", "root", "Go 1.26", "riscv64"):
        assert word in text
    assert len(text.splitlines()) == 5


def test_an_old_go_is_named_with_its_version() -> None:
    text = message(MachineFacts(debian=True, root=True, go=(1, 9), architecture="x86_64"))
    assert text is not None and "1.9" in text and "root" not in text


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26)),
        ("go version go1.27rc1 linux/arm64", (1, 27)),
        ("go version devel +abc", None),
        ("", None),
    ],
)
def test_go_version(text: str, version: tuple[int, int] | None) -> None:
    assert parse_go_version(text) == version


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ('ID=debian\nVERSION_ID="12"\n', True),
        ("ID=ubuntu\nID_LIKE=debian\n", True),
        ('ID="raspbian"\nID_LIKE="debian"\n', True),
        ("ID=fedora\n", False),
        ("", False),
    ],
)
def test_is_debian(release: str, expected: bool) -> None:
    assert is_debian(release) is expected


def test_another_process_on_the_port_of_the_service_is_refused() -> None:
    with socket.create_server((LOOPBACK, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(DevClusterError, match=rf"port {port} .*CREWYARD_CLUSTER=kind make down"):
            check_port(port)
    check_port(port)
