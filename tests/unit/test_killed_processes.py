"""Temporary files of a killed controller, API server or test are removed when the next one starts."""

import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from kube.owned_directory import TEMPORARY_PREFIX, remove_abandoned
from tests.testbed.certificates import Certificate, certificate
from tests.testbed.ports import free_port, until_listening
from tests.unit.api.store import postgres_server as pg

ROOT = Path(__file__).resolve().parents[2]


def kubeconfig(identity: Certificate) -> str:
    """Return a kubeconfig with a client certificate, of a server that does not listen."""
    pem = {name: base64.b64encode(text.encode()).decode() for name, text in vars(identity).items()}
    cluster = {"server": "https://127.0.0.1:9", "certificate-authority-data": pem["text"]}
    user = {"client-certificate-data": pem["text"], "client-key-data": pem["key"]}
    context = {"cluster": "x", "user": "x"}
    parts = {"clusters": cluster, "users": user, "contexts": context}
    lists = {name: [{"name": "x", name.removesuffix("s"): part}] for name, part in parts.items()}
    return json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", **lists})


def environment(directory: Path, port: int) -> dict[str, str]:
    """Return settings of both processes."""
    return {
        "PATH": os.environ["PATH"],
        "TMPDIR": str(directory / "tmp"),
        "KUBECONFIG": str(directory / "kubeconfig"),
        "CREWYARD_DATA": str(directory / "data"),
        "CREWYARD_TOKEN_KEY": "k" * 32,
        "CREWYARD_INTERNAL_URL": "http://127.0.0.1:9",
        "CREWYARD_SERVICE_IMAGE": "registry/service@sha256:00",
        "CREWYARD_KANIKO_IMAGE": "registry/kaniko:v1.24.0",
        "CREWYARD_BASE_IMAGES": json.dumps({"3.11": "registry/python:3.11-slim"}),
        "CREWYARD_REGISTRY": "registry:5000",
        "CREWYARD_PORT": str(port),
        "CREWYARD_CONTROLLER_PORT": str(port),
    }


def run_and_end(module: str, directory: Path, number: signal.Signals) -> list[str]:
    """Start a process, end it by a signal once it listens; return the temporary files that it had."""
    port = free_port()
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT, env=environment(directory, port), stdout=log, stderr=log,
        )  # fmt: skip
    try:
        until_listening(port, 180)
        had = temporary_files(directory)
        process.send_signal(number)
        process.wait(180)
    finally:
        process.kill()
        process.wait()
    return had


def temporary_files(directory: Path) -> list[str]:
    """Return the names of all temporary directories."""
    return sorted(path.name for path in (directory / "tmp").rglob("*") if path.is_dir())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("module", ["controller", "api"])
def test_the_next_process_removes_what_a_killed_one_left(tmp_path: Path, module: str) -> None:
    """Slow: each process starts twice."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "kubeconfig").write_text(kubeconfig(certificate("127.0.0.1")))
    had = run_and_end(module, tmp_path, signal.SIGKILL)
    assert [name[: len(TEMPORARY_PREFIX)] for name in had].count(TEMPORARY_PREFIX) == 1
    assert set(had) <= set(temporary_files(tmp_path))
    again = run_and_end(module, tmp_path, signal.SIGTERM)
    assert not set(again) & {name for name in had if "-" in name}
    assert temporary_files(tmp_path) == []


def test_the_database_server_of_a_killed_test_leaves_no_directory() -> None:
    if not (pg.PROGRAMS / "postgres").exists():
        pytest.skip(pg.MISSING)
    killed = (
        "from tests.unit.api.store.postgres_server import PostgresServer; import os, signal;"
        "print(PostgresServer().directory, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", killed], cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=240
    )
    assert ended.returncode == -signal.SIGKILL
    # The server ends a moment after the test, and may write until then.
    deadline = time.monotonic() + 60
    while Path(ended.stdout.strip()).exists():
        assert time.monotonic() < deadline
        remove_abandoned(Path(tempfile.gettempdir()), pg.DIRECTORY_PREFIX)
        time.sleep(0.05)
