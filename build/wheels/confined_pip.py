"""pip for another Python version, without subprocesses: `python3 -I confined_pip.py 3.12 download …`.

Run by build.wheels.download with a credential in its environment. Regardless of the index, pip cannot
execute code of a package (setup.py, a build backend) or git.
"""

import platform
import runpy
import sys

_PROCESS_EVENTS = frozenset(
    ("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn")
)


def _deny(event: str, arguments: object) -> None:
    if event in _PROCESS_EVENTS:
        raise PermissionError("nothing may be executed while packages are downloaded")


def confine(python: str) -> None:
    """Forbid this process to start others, and evaluate markers for `python` (such as 3.12)."""
    # --python-version selects files, but pip evaluates markers for the Python that it runs on.
    platform.python_version = lambda: f"{python}.0"
    platform.python_version_tuple = lambda: (*python.split("."), "0")  # type: ignore[assignment, return-value]
    sys.addaudithook(_deny)


if __name__ == "__main__":
    confine(sys.argv[1])
    sys.argv[:] = ["pip", *sys.argv[2:]]
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
