"""`python3 -I -S changed_files.py SCRIPT LAYER`: execute a script and write what it changed as a layer.

The dependencies pod executes this file, alone, as root in the container of a base image and with its Python.
The layer is an uncompressed tar, without mount points and files below /tmp. The exit code is 1 where the
script fails.
"""

import os
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

State = tuple[int, int, int, int, int]
"""Mode, owner, group, size, and time of the last change in nanoseconds."""

_KILLED_CODE = 128
"""Exit codes of a shell from here on are signals; those of a container mean that its node ended it."""


def main(arguments: list[str], root: str = "/") -> int:
    """Execute the script and write the layer of what it changed below `root`; return the exit code."""
    script, layer = arguments
    skipped = {"/tmp", *mount_points()}
    command = Path(script).read_text(encoding="utf-8")
    before = states(root, skipped)
    code = subprocess.call(["/bin/sh", "-c", command], cwd=root)
    if code:
        shown = code if code > 0 else _KILLED_CODE - code
        # As Kaniko says it: plan.packages.pip_log looks for the cause before this line.
        print(f"error building image: exit status {shown}", flush=True)
        return 1
    try:
        write_layer(root, before, states(root, skipped), layer)
    except OSError as error:
        print(f"the layer of the installation cannot be written: {error}", flush=True)
        return 1
    return 0


def mount_points() -> set[str]:
    """Return the mount points of this process except /."""
    text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    points = {line.split(" ")[4] for line in text.splitlines()}
    # The kernel writes a space as \\040.
    return {point.replace("\\040", " ").replace("\\134", "\\") for point in points} - {"/"}


def states(root: str, skipped: set[str]) -> dict[str, State]:
    """Return the state of each file below `root` by its path; nothing at or below `skipped`."""
    found: dict[str, State] = {}
    directories = [root]
    while directories:
        for entry in _entries(directories.pop()):
            if entry.path in skipped:
                continue
            status = entry.stat(follow_symlinks=False)
            found[entry.path] = (
                status.st_mode,
                status.st_uid,
                status.st_gid,
                status.st_size,
                status.st_ctime_ns,
            )
            if stat.S_ISDIR(status.st_mode):
                directories.append(entry.path)
    return found


def _entries(directory: str) -> Iterator["os.DirEntry[str]"]:
    with os.scandir(directory) as entries:
        yield from entries


def write_layer(root: str, before: dict[str, State], after: dict[str, State], path: str) -> None:
    """Write the files that are new or changed since `before`, and whiteouts of those that are gone."""
    written: dict[tuple[int, int], str] = {}
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for gone in sorted(before.keys() - after.keys()):
            parent, name = os.path.split(gone)
            # A whiteout of a directory includes its files, and so does a file that takes its place.
            if parent == root or (parent in after and stat.S_ISDIR(after[parent][0])):
                tar.addfile(tarfile.TarInfo(_member_name(root, f"{parent}/.wh.{name}")))
        for changed in sorted(name for name, state in after.items() if before.get(name) != state):
            _add(tar, root, changed, written)


def _add(tar: tarfile.TarFile, root: str, path: str, written: dict[tuple[int, int], str]) -> None:
    status = os.lstat(path)
    info = tarfile.TarInfo(_member_name(root, path))
    info.mode, info.mtime = stat.S_IMODE(status.st_mode), int(status.st_mtime)
    info.uid, info.gid = status.st_uid, status.st_gid
    if stat.S_ISDIR(status.st_mode):
        info.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(status.st_mode):
        info.type, info.linkname = tarfile.SYMTYPE, str(Path(path).readlink())
    elif not stat.S_ISREG(status.st_mode):
        return
    elif status.st_nlink > 1 and (status.st_dev, status.st_ino) in written:
        info.type, info.linkname = tarfile.LNKTYPE, written[status.st_dev, status.st_ino]
    else:
        written[status.st_dev, status.st_ino] = info.name
        info.size = status.st_size
        with Path(path).open("rb") as content:
            tar.addfile(info, content)
        return
    tar.addfile(info)


def _member_name(root: str, path: str) -> str:
    return os.path.relpath(path, root)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
