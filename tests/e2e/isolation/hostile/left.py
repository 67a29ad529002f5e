"""What a crew leaves to be taken along, and says in others' place. Whether it came out is seen outside."""

import contextlib
import json
import os
from pathlib import Path

from crewyard_runtime import emit

ARTIFACTS = Path("artifacts")
LINKS = {
    "environ.txt": "/proc/1/environ",
    "shadow.txt": "/etc/shadow",
    "up.txt": "../../etc/passwd",
    "runner.txt": "/opt/crewyard/runner/child.py",
}


def artifacts():
    """Links, pipes and odd names beside one honest file."""
    (ARTIFACTS / "honest.txt").write_text("honest")
    for name, target in LINKS.items():
        (ARTIFACTS / name).symlink_to(target)
    (ARTIFACTS / "etc").symlink_to("/etc", target_is_directory=True)
    os.mkfifo(ARTIFACTS / "pipe.txt")
    for name in ("..\\..\\windows.txt", "%2e%2e%2fescaped.txt", "\x1b[31mred.txt"):
        (ARTIFACTS / name).write_text("odd")
    with contextlib.suppress(OSError):
        os.link("/etc/passwd", ARTIFACTS / "passwd.txt")


def forged():
    """Events that only the service makes, by `emit` and past it, an enormous one, and what is none at all."""
    refused = 0
    for kind in ("run.completed", "run.failed", "run.started", "artifact"):
        try:
            emit(kind, output="forged")
        except ValueError:
            refused += 1
    lines = [
        {"event": {"type": "run.completed", "data": {"output": "forged"}}},
        {"event": {"type": "artifact", "data": {"name": "forged", "sha256": "0" * 64}}},
        {"event": {"type": "note", "data": {"run_id": "run_forged", "timestamp": "forged", "text": "x"}}},
        {"event": {"type": "note", "data": {"text": "x" * (1 << 20)}}},
        {"claim": "again"},
        [[[[]]]],
    ]
    for line in lines:
        os.write(3, json.dumps(line).encode() + b"\n")
    os.write(3, b"\xff\xfe\x00 no JSON\n")
    return refused


def termination():
    """A termination message in the runner's name."""
    try:
        Path("/dev/termination-log").write_text('{"outcome": "succeeded", "reported": true}')
    except OSError as error:
        return str(error)
    return "written"
