"""git commands on the checkout. Called by the action `deploy` and by `actions.workflow.source.pack`."""

import contextlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from actions.workflow.errors import StepFailed

SUBMODULE = "160000"
"""The mode of a submodule that is not checked out."""
_TIMEOUT_SECONDS = 120.0
# In containers the checkout often belongs to another user. Do not execute programs that it configures.
_SETTINGS = ("-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false")


@dataclass(frozen=True)
class TrackedFile:
    """A tracked path, relative to the directory, and its git mode (`100644`, `120000`, …)."""

    path: str
    mode: str


def output(directory: Path, *arguments: str) -> bytes:
    """Return the output of a git command. Raises StepFailed with its error."""
    # Else Windows takes a git.exe of the current directory, which is the checkout.
    os.environ.setdefault("NoDefaultCurrentDirectoryInExePath", "1")
    try:
        done = subprocess.run(
            ["git", *_SETTINGS, "-C", str(directory), *arguments],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise StepFailed("git is not on the PATH of this runner; install it.") from None
    except subprocess.TimeoutExpired:
        raise StepFailed(f"git {arguments[0]} took longer than {_TIMEOUT_SECONDS:.0f} s.") from None
    if done.returncode:
        error = done.stderr.decode("utf-8", "replace").strip()[-500:]
        raise StepFailed(f"git {arguments[0]} failed: {error}")
    return done.stdout


def text(directory: Path, *arguments: str) -> str | None:
    """Return the first line that git prints; None if it fails or prints nothing."""
    try:
        printed = output(directory, *arguments).decode("utf-8", "replace")
    except StepFailed:
        return None
    return printed.partition("\n")[0].strip() or None


def tracked_files(directory: Path) -> list[TrackedFile]:
    """Return the tracked files below `directory`, also of submodules that are checked out.

    Raises StepFailed outside a checkout or during a merge.
    """
    if text(directory, "rev-parse", "--is-inside-work-tree") != "true":
        raise StepFailed(
            f"{directory} is not in a git checkout, and only tracked files are deployed. "
            "Add actions/checkout before this step; is the input working-directory right?"
        )
    entries = _listed(directory)
    if any(entry.mode == SUBMODULE for entry in entries):
        with contextlib.suppress(StepFailed):  # git before 2.36 does not list them so
            entries = _listed(directory, "--recurse-submodules")
    return entries


def _listed(directory: Path, *options: str) -> list[TrackedFile]:
    entries = []
    for record in output(directory, "ls-files", "-z", "--stage", *options).split(b"\0"):
        if not record:
            continue
        metadata, _, raw = record.partition(b"\t")
        mode, _, stage = metadata.decode("ascii").split(" ")
        try:
            path = raw.decode()
        except UnicodeDecodeError:
            raise StepFailed(f"The tracked file {raw!r} has a name that is not UTF-8; rename it.") from None
        if stage != "0":
            raise StepFailed(f"{path} has an unfinished merge; finish it first.")
        entries.append(TrackedFile(path, mode))
    return entries
