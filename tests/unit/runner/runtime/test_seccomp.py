"""The filter that the crew's process puts on itself, on this machine's own kernel."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runner.crewyard_runtime import seccomp

ROOT = Path(__file__).parents[4]
TRIES = """
import ctypes, json, os, resource, subprocess, sys
sys.path.insert(0, sys.argv[1])
from runner.crewyard_runtime import seccomp
closed = seccomp.close() if sys.argv[2] == "closed" else None
libc = ctypes.CDLL(None, use_errno=True)
def of(call):
    try:
        call()
        return 0
    except OSError as error:
        return error.errno
def uring():
    if libc.syscall(ctypes.c_long(425), ctypes.c_long(4), ctypes.create_string_buffer(120)) < 0:
        raise OSError(ctypes.get_errno(), "")
child = subprocess.Popen(["sleep", "60"])
print(json.dumps({
    "closed": closed,
    "io_uring": of(uring),
    "process 1": of(lambda: resource.prlimit(1, resource.RLIMIT_NOFILE)),
    "itself": of(lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0))),
    "its child": of(lambda: resource.prlimit(child.pid, resource.RLIMIT_CORE, (0, 0))),
    "inherited": int(subprocess.run([sys.executable, "-c",
        "import resource\\ntry:\\n resource.prlimit(1, resource.RLIMIT_NOFILE)\\n"
        "except OSError as e: print(e.errno)\\nelse: print(0)"], capture_output=True).stdout),
}))
child.kill()
"""


def tried(how: str) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, "-c", TRIES, str(ROOT), how], capture_output=True, text=True, timeout=60
    )
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_io_uring_and_the_limits_of_process_1_are_closed_to_it_and_its_children():
    without = tried("open")
    if without["process 1"] or without["io_uring"]:
        pytest.skip("this machine closes them itself, or its process 1 is another user's")
    assert tried("closed") == {
        **{"closed": True, "io_uring": 1, "process 1": 1, "inherited": 1},
        **{"itself": 0, "its child": 0},
    }


def test_no_step_leads_beyond_the_end():
    steps = seccomp.program()
    for at, (_, yes, no, _) in enumerate(steps):
        assert max(yes, no) + at + 1 < len(steps) or (at == len(steps) - 1 and yes == no == 0)
