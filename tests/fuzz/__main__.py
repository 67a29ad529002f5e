"""Fuzzes each target in turn, guided by coverage: `python -m tests.fuzz SECONDS [TARGET…]`.

The seconds are of processor time: on a busy machine it takes longer, and tries as much.
Needs atheris (`make fuzz-parsers` installs it). Each target is a process of its own with limits of memory and
of the time for one input. What it learns is kept in a directory of the machine; a crash is written to
tests/fuzz/found/<target>, where the tests replay it. The exit code is 1 if there was one.
"""

import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzz.every import TARGETS
from tests.fuzz.target import FuzzTarget

CORPUS = Path(os.environ.get("CREWYARD_FUZZ_CORPUS") or Path.home() / ".cache/crewyard-fuzz")
FOUND = Path(__file__).parent / "found"
MEMORY_MIB = 1024
ONE_SECONDS = 10
_START_SECONDS = 120
_SLOWEST = 20
"""How many times longer than its processor time a target may take."""


def command(target: FuzzTarget, seconds: int) -> list[str]:
    """The command line of a fuzzing process; the corpus of earlier times is its start."""
    corpus, found = CORPUS / target.name, FOUND / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    flags = {
        "max_total_time": seconds,
        "max_len": target.longest,
        "timeout": ONE_SECONDS,
        "rss_limit_mb": MEMORY_MIB,
        "artifact_prefix": f"{found}/",
        "print_final_stats": 1,
        "verbosity": 1,
    }
    options = [f"-{name}={value}" for name, value in flags.items()]
    return [sys.executable, "-m", "tests.fuzz.guided", target.name, *options, str(corpus)]


def cases(output: str) -> int:
    """Return how many inputs a process has tried, from its output."""
    counts = re.findall(r"stat::number_of_executed_units:\s*(\d+)", output) or re.findall(
        r"^#(\d+)", output, re.M
    )
    return int(counts[-1]) if counts else 0


def run(target: FuzzTarget, seconds: int) -> bool:
    """Fuzz one target and prints one line (and the traceback of a crash). True if nothing was found.

    Raises subprocess.TimeoutExpired where it had no processor for its time.
    """
    begun, tried, covered, good = _processor_seconds(), 0, "?", True
    end = time.monotonic() + _SLOWEST * seconds + _START_SECONDS
    while good and (left := seconds - (_processor_seconds() - begun)) > 0:
        output, good = _once(target, max(1, round(left)), end - time.monotonic())
        tried += cases(output)
        covered = (re.findall(r"cov: (\d+)", output) or [covered])[-1]
    spent = _processor_seconds() - begun
    words = f"{tried:>10,} cases {spent:6.0f} s   {covered:>5} branches"
    print(f"{target.name:<14} {words}   {'' if good else 'CRASH'}", flush=True)
    if not good:
        print("\n".join(output.splitlines()[-60:]), flush=True)
    directory = FOUND / target.name
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()
    return good


def _once(target: FuzzTarget, seconds: int, most: float) -> tuple[str, bool]:
    """What a process says, and whether it found nothing; `seconds` are those of a clock here."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        command(target, seconds), capture_output=True, timeout=most, env=environment, check=False
    )
    output = done.stderr.decode(errors="replace") + done.stdout.decode(errors="replace")
    return output, done.returncode == 0


def _processor_seconds() -> float:
    """Of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(arguments: list[str]) -> int:
    """Run the named targets, or all of them."""
    seconds, names = int(arguments[0]) if arguments else 60, arguments[1:] or list(TARGETS)
    good = [run(TARGETS[name], seconds) for name in names]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
