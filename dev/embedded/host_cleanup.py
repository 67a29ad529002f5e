"""Remove what pods leave on the host: shims, mounts, network namespaces, files outside the state directory.

Called by `down` after kubelet and containerd have stopped. Removes only what has the state directory in its
name.
"""

import subprocess
import time
from pathlib import Path

from dev.process import process
from dev.settings import BRIDGE, Settings

_CNI_RESULTS = Path("/var/lib/cni/results")
_POD_LINKS = Path("/var/log/containers")
_SHIM_SOCKETS = Path("/run/containerd/s")
_DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")


def shims(settings: Settings) -> list[process.ProcessIdentity]:
    """Return the shims of this containerd; their arguments contain its socket."""
    socket = str(settings.containerd_socket).encode()
    identities = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if arguments[0].rpartition(b"/")[2].startswith(b"containerd-shim") and socket in arguments:
            identity = process.identity_of(int(entry.name))
            if identity:
                identities.append(identity)
    return identities


def shim_sockets(settings: Settings) -> list[Path]:
    """Return the sockets recorded by running shims; all containerd instances share their directory."""
    notes = (settings.run / "containerd" / "io.containerd.runtime.v2.task").glob("*/*/address")
    names = (note.read_text().strip().removeprefix("unix://") for note in notes)
    return [Path(name) for name in names if Path(name).parent == _SHIM_SOCKETS]


def end_shims(settings: Settings) -> None:
    """Stop the shims; their containers are dead already."""
    sockets = shim_sockets(settings)
    for identity in shims(settings):
        process.stop(identity, grace=0.0)
    for path in sockets:
        path.unlink(missing_ok=True)


def mounts_below(mountinfo: str, directory: Path) -> list[str]:
    """Return the mount points at or below `directory` in `mountinfo`, deepest first."""
    points = [line.split()[4].encode().decode("unicode_escape") for line in mountinfo.splitlines()]
    below = [point for point in points if point == str(directory) or point.startswith(f"{directory}/")]
    return sorted(below, key=lambda point: (point.count("/"), point), reverse=True)


def unmount(settings: Settings) -> list[str]:
    """Unmount everything below the state directory within five seconds. Return what is still mounted."""
    deadline = time.monotonic() + 5
    while True:
        points = mounts_below(Path("/proc/self/mountinfo").read_text(), settings.state)
        if not points or time.monotonic() > deadline:
            return points
        for point in points:
            done = subprocess.run(["umount", point], capture_output=True, timeout=30, check=False)
            if done.returncode != 0:
                subprocess.run(["umount", "--lazy", point], capture_output=True, timeout=30, check=False)


def _remove_if_empty(*directories: Path) -> None:
    for directory in directories:
        try:
            directory.rmdir()
        except OSError:
            return


def remove_host_files(settings: Settings) -> None:
    """Remove the files in directories that containerd, CNI and kubelet hard-code."""
    if _CNI_RESULTS.is_dir():
        ours = [path.name.split("-")[1] for path in _CNI_RESULTS.glob("crewyard-*-eth0")]
        for container in ours:
            for path in _CNI_RESULTS.glob(f"*-{container}-*"):
                path.unlink(missing_ok=True)
        _remove_if_empty(_CNI_RESULTS, _CNI_RESULTS.parent)
    if _POD_LINKS.is_dir():
        for link in _POD_LINKS.iterdir():
            if link.is_symlink() and link.readlink().is_relative_to(settings.logs):
                link.unlink()
        _remove_if_empty(_POD_LINKS)
    if _DEVICE_PLUGINS.is_dir():
        (_DEVICE_PLUGINS / "kubelet.sock").unlink(missing_ok=True)
        _remove_if_empty(_DEVICE_PLUGINS, _DEVICE_PLUGINS.parent)
    _remove_if_empty(_SHIM_SOCKETS, _SHIM_SOCKETS.parent)


def bridge_ports() -> list[str]:
    """Return interfaces still attached to the bridge: none after a clean `down`."""
    path = Path("/sys/class/net") / BRIDGE / "brif"
    return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []
