"""The seccomp filter of the crew's process, on the kernel of this machine."""

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
closed = seccomp.install_filter() if sys.argv[2] == "closed" else None
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


def run_tries(how: str) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, "-c", TRIES, str(ROOT), how], capture_output=True, text=True, timeout=60
    )
    results: dict[str, int] = json.loads(done.stdout)
    return results


def test_the_filter_blocks_io_uring_and_the_limits_of_process_1():
    without = run_tries("open")
    if without["process 1"] or without["io_uring"]:
        pytest.skip("this machine already blocks them, or its process 1 belongs to another user")
    assert run_tries("closed") == {
        **{"closed": True, "io_uring": 1, "process 1": 1, "inherited": 1},
        **{"itself": 0, "its child": 0},
    }


def test_no_jump_leads_beyond_the_end():
    steps = seccomp.filter_program()
    for at, (_, yes, no, _) in enumerate(steps):
        assert max(yes, no) + at + 1 < len(steps) or (at == len(steps) - 1 and yes == no == 0)
