"""Settings of the TLS port."""

from pathlib import Path

import pytest

from internal_tls.settings import PodTlsSettings, parse_controller_tls, parse_pod_tls
from tests.testbed.certificates import TestAuthority, store


def parse(**values: str) -> tuple[PodTlsSettings, list[str]]:
    wrong: list[str] = []
    return parse_pod_tls(
        {f"CREWYARD_INTERNAL_{name}": value for name, value in values.items()}, 8080, wrong
    ), wrong


def test_there_is_no_tls_port_by_default() -> None:
    assert parse() == (PodTlsSettings(None, 8443, plain=True), [])


def test_directory_port_and_plain_calls(tmp_path: Path) -> None:
    store(tmp_path, TestAuthority().issue("a"))
    found, wrong = parse(TLS_DIR=str(tmp_path), TLS_PORT="9443", PLAIN="off")
    assert (found, wrong) == (PodTlsSettings(tmp_path, 9443, plain=False), [])


@pytest.mark.parametrize(
    ("text", "plain"),
    [("", True), ("on", True), ("true", True), ("1", True), (" OFF ", False), ("false", False), ("0", False)],
)
def test_words_of_a_flag(text: str, plain: bool, tmp_path: Path) -> None:
    store(tmp_path, TestAuthority().issue("a"))
    found, wrong = parse(TLS_DIR=str(tmp_path), PLAIN=text)
    assert (found.plain, wrong) == (plain, [])


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"TLS_DIR": "/nowhere"}, "CREWYARD_INTERNAL_TLS_DIR: /nowhere/tls.crt is not readable"),
        ({"TLS_PORT": "x"}, "CREWYARD_INTERNAL_TLS_PORT: must be a port"),
        ({"TLS_PORT": "0"}, "CREWYARD_INTERNAL_TLS_PORT: must be a port"),
        ({"PLAIN": "maybe"}, "CREWYARD_INTERNAL_PLAIN: must be on or off"),
        ({"PLAIN": "off"}, "no pod could reach the API server"),
    ],
)
def test_wrong_values_are_named(values: dict[str, str], named: str) -> None:
    _, wrong = parse(**values)
    assert len(wrong) == 1 and named in wrong[0]


def test_both_listeners_need_ports_of_their_own(tmp_path: Path) -> None:
    store(tmp_path, TestAuthority().issue("a"))
    _, wrong = parse(TLS_DIR=str(tmp_path), TLS_PORT="8080")
    assert "CREWYARD_INTERNAL_TLS_PORT" in wrong[0]


def parse_controller(**values: str) -> tuple[PodTlsSettings, list[str]]:
    wrong: list[str] = []
    environ = {f"CREWYARD_{name}": value for name, value in values.items()}
    return parse_controller_tls(environ, 9090, plain=False, wrong=wrong), wrong


def test_controller_has_a_port_where_its_url_is_set(tmp_path: Path) -> None:
    store(tmp_path, TestAuthority().issue("a"))
    found = parse_controller(INTERNAL_TLS_DIR=str(tmp_path), CONTROLLER_TLS_URL="https://controller:9443")
    assert found == (PodTlsSettings(tmp_path, 9443, plain=False), [])
    # Without the URL, the directory is that of the API server: this process need not have it.
    without = parse_controller(INTERNAL_TLS_DIR="/nowhere")
    assert without == (PodTlsSettings(None, 9443, plain=False), [])


@pytest.mark.parametrize("port", ["9090", "0", "x"])
def test_wrong_ports_of_the_controller_are_named(tmp_path: Path, port: str) -> None:
    store(tmp_path, TestAuthority().issue("a"))
    _, wrong = parse_controller(
        INTERNAL_TLS_DIR=str(tmp_path), CONTROLLER_TLS_URL="https://a", CONTROLLER_TLS_PORT=port
    )
    assert len(wrong) == 1 and wrong[0].startswith("CREWYARD_CONTROLLER_TLS_PORT: must be a port")
