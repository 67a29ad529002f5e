"""pip for another Python that can start no program: `python3 -I confined_pip.py 3.12 download …`.

Run by build.wheels.download beside a credential. What pip would execute to learn about a
package (a setup.py, a build backend, git) it cannot, whatever an index offers.
"""

import platform
import runpy
import sys

_STARTS = frozenset(
    ("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn")
)


def _refuse(event: str, arguments: object) -> None:
    if event in _STARTS:
        raise PermissionError("nothing may be executed while packages are downloaded")


def confine(python: str) -> None:
    """From here on this process starts no other, and packages' markers see Python `python` (as in 3.12)."""
    # --python-version chooses files, but pip judges markers by the Python that it runs on.
    platform.python_version = lambda: f"{python}.0"
    platform.python_version_tuple = lambda: (*python.split("."), "0")  # type: ignore[assignment, return-value]
    sys.addaudithook(_refuse)


if __name__ == "__main__":
    confine(sys.argv[1])
    sys.argv[:] = ["pip", *sys.argv[2:]]
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
