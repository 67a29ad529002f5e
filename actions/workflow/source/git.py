"""What git says of the checkout. Called by the deploy program and by `actions.workflow.source.pack`."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from actions.workflow.errors import Failed

_SECONDS = 120.0
# In a container the checkout often belongs to another user; and nothing that it configures is executed.
_SETTINGS = ("-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false")


@dataclass(frozen=True)
class Entry:
    """A tracked path, relative to the directory, and git's mode of it (`100644`, `120000`, …)."""

    path: str
    mode: str


def output(directory: Path, *arguments: str) -> bytes:
    """What git prints. Raises Failed with its complaint."""
    try:
        done = subprocess.run(
            ["git", *_SETTINGS, "-C", str(directory), *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise Failed("There is no git on this runner's PATH; install it.") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"git {arguments[0]} took longer than {_SECONDS:.0f} s.") from None
    if done.returncode:
        complaint = done.stderr.decode("utf-8", "replace").strip()[-500:]
        raise Failed(f"git {arguments[0]} failed: {complaint}")
    return done.stdout


def text(directory: Path, *arguments: str) -> str | None:
    """The first line that git prints, None where it fails or prints nothing."""
    try:
        found = output(directory, *arguments).decode("utf-8", "replace")
    except Failed:
        return None
    return found.partition("\n")[0].strip() or None


def tracked(directory: Path) -> list[Entry]:
    """What git tracks below `directory`. Raises Failed where that is no checkout, or in mid-merge."""
    if text(directory, "rev-parse", "--is-inside-work-tree") != "true":
        raise Failed(
            f"{directory} is in no git checkout, and only what git tracks is deployed. "
            "Add actions/checkout before this step; is the input working-directory right?"
        )
    entries = []
    for record in output(directory, "ls-files", "-z", "--stage").split(b"\0"):
        if not record:
            continue
        about, _, raw = record.partition(b"\t")
        mode, _, stage = about.decode("ascii").split(" ")
        try:
            path = raw.decode()
        except UnicodeDecodeError:
            raise Failed(f"The tracked file {raw!r} has a name that is not UTF-8; rename it.") from None
        if stage != "0":
            raise Failed(f"{path} is in the middle of a merge; finish it first.")
        entries.append(Entry(path, mode))
    return entries
