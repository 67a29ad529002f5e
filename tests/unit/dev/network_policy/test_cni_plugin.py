"""The CNI plugin as the container runtime calls it: a pod starts only with the enforcer's confirmation."""

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from dev.network_policy import install
from dev.settings import Settings

BEFORE = {
    "cniVersion": "0.4.0",
    "interfaces": [{"name": "eth0"}],
    "ips": [{"version": "4", "address": "10.213.0.7/16", "gateway": "10.213.0.1"}],
}


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    settings = Settings(tmp_path)
    install.install_plugins(settings)
    install.install_plugins(settings)
    plugin_directory = install.directory(settings)
    assert {path.name for path in plugin_directory.iterdir()} == {
        "bridge",
        "host-local",
        "loopback",
        install.NAME,
    }
    return plugin_directory / install.NAME


def called(plugin: Path, command: str, path: Path) -> tuple[int, Any]:
    environment = {
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": "sandbox-1",
        "CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=crews;K8S_POD_NAME=run-a;K8S_POD_UID=uid-a",
    }
    configuration = {"cniVersion": "0.4.0", "name": "crewyard", "socket": str(path), "prevResult": BEFORE}
    done = subprocess.run(
        [str(plugin)],
        input=json.dumps(configuration),
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else None


def answering(path: Path, response: bytes, requests: list[Any]) -> threading.Thread:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    def serve() -> None:
        connection, _ = server.accept()
        with connection, server:
            requests.append(json.loads(connection.makefile().readline()))
            connection.sendall(response)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def test_a_pod_starts_when_its_rules_are_applied(plugin, tmp_path):
    requests: list[Any] = []
    answering(tmp_path / "sock", b'{"problem": null}\n', requests)
    assert called(plugin, "ADD", tmp_path / "sock") == (0, BEFORE)
    assert requests == [
        {
            **{"command": "ADD", "namespace": "crews", "name": "run-a", "uid": "uid-a"},
            **{"container": "sandbox-1", "addresses": ["10.213.0.7"]},
        }
    ]


@pytest.mark.parametrize("answer", [b'{"problem": "no rules"}\n', b'{"prob', b"", b"no JSON\n"])
def test_without_confirmation_the_runtime_retries(plugin, tmp_path, answer):
    answering(tmp_path / "sock", answer, [])
    code, result = called(plugin, "ADD", tmp_path / "sock")
    assert (code, result["code"]) == (1, 11)
    assert result["msg"].startswith("crewyard network policy enforcer: ")


def test_without_the_enforcer_no_pod_starts_and_all_can_end(plugin, tmp_path):
    code, result = called(plugin, "ADD", tmp_path / "none")
    assert (code, result["code"]) == (1, 11)
    assert called(plugin, "DEL", tmp_path / "none") == (0, None)


def test_supported_versions(plugin, tmp_path):
    code, result = called(plugin, "VERSION", tmp_path / "none")
    assert code == 0 and "0.4.0" in result["supportedVersions"]
    assert plugin.read_text().splitlines()[0] == f"#!{sys.executable} -IS"
