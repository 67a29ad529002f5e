"""Ports for test servers: reserved against every other process that runs tests."""

import subprocess
import sys
from pathlib import Path

from tests.testbed import ports

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
from tests.testbed import ports
print(*(ports.free_port() for _ in range(150)), flush=True)
sys.stdin.read()
"""


def test_processes_at_work_get_different_ports() -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    drawn = [port for child in children if child.stdout for port in child.stdout.readline().split()]
    for child in children:
        child.communicate(timeout=60)
    assert len(drawn) == 600 and len(set(drawn)) == 600


def test_the_port_of_an_exited_process_is_free_again(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(ports, "_RESERVED", tmp_path)
    exited = subprocess.Popen(["true"])
    exited.wait(timeout=60)
    (tmp_path / "20000").write_text(str(exited.pid))
    (tmp_path / "20001").write_text("1")
    assert ports._reserve(20000)
    assert not ports._reserve(20000) and not ports._reserve(20001)
