"""Looks for secrets of others in all that can be read. It finds its own too, which shows that it can see."""

import glob
import os
import re
import stat

from tries import Stopped, attempt

MOST = 8 << 20
MEMORY = 64 << 20
# Written in parts, so that this file is none of what they find.
CANARY = re.compile(b"canary-" + b"[0-9a-f]{24}")
TOKEN = re.compile(
    b"WyJidWls" + b"ZCIs[A-Za-z0-9_.-]+|WyJydW4" + b"iLC[A-Za-z0-9_.-]+|crw" + b"_[a-z0-9]{20,}"
)
PLACES = ("/kaniko/.docker/*", "/root/.docker/*", "/home/*/.docker/*", "/root/.config/*/*")


def _foreign(found, places, blind=True):
    """What is not our own. Raises where there is none, and where not even ours was seen."""
    if blind and places["own"] not in found:
        return "it did not see its own"
    others = sorted(set(found) - {places["own"]})
    if not others:
        raise Stopped("no secret but its own")
    return others


def _secrets(content):
    return {match.decode() for pattern in (CANARY, TOKEN) for match in pattern.findall(content)}


def _processes(part):
    for place in glob.glob("/proc/[0-9]*"):
        try:
            with open(f"{place}/{part}", "rb") as file:
                yield place, file.read()
        except OSError:
            continue


@attempt
def secrets_in_files(places):
    found = set()
    for above, directories, names in os.walk("/"):
        skipped = ("/proc", "/sys", "/dev")
        directories[:] = [name for name in directories if os.path.join(above, name) not in skipped]
        for name in names:
            path = os.path.join(above, name)
            try:
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode) and status.st_size <= MOST:
                    with open(path, "rb") as file:
                        found |= _secrets(file.read())
            except OSError:
                continue
    return _foreign(found, places)


@attempt
def secrets_in_variables(places):
    os.environ["OWN"] = places["own"]
    found = _secrets("\n".join(os.environ.values()).encode())
    for _, content in _processes("environ"):
        found |= _secrets(content)
    return _foreign(found, places)


@attempt
def secrets_in_command_lines(places):
    found = set()
    for _, content in _processes("cmdline"):
        found |= _secrets(content)
    return _foreign(found, places, blind=False)


@attempt
def secrets_in_memory(places):
    """Of every process that may be read, Kaniko's too."""
    kept, found = places["own"], set()
    for place, maps in _processes("maps"):
        left = MEMORY
        try:
            with open(f"{place}/mem", "rb", 0) as memory:
                for line in maps.decode().splitlines():
                    span, rights = line.split()[:2]
                    if "rw" not in rights or left <= 0:
                        continue
                    start, end = (int(one, 16) for one in span.split("-"))
                    memory.seek(start)
                    content = memory.read(min(end - start, left))
                    left -= len(content)
                    found |= _secrets(content)
        except (OSError, OverflowError, ValueError):
            continue
    return _foreign(found, places) if kept else None


@attempt
def names_of_variables(places):
    pattern = re.compile("TOKEN|SECRET|PASS|AUTH|CREWYARD|GIT_")
    found = sorted(name for name in os.environ if pattern.search(name))
    if not found:
        raise Stopped("no variable has such a name")
    return found


@attempt
def configuration_of_docker(places):
    patterns = [*PLACES, f"{os.environ.get('DOCKER_CONFIG', '/nowhere')}/*"]
    found = sorted(path for pattern in patterns for path in glob.glob(pattern))
    if not found:
        raise Stopped("none is there")
    return found


@attempt
def token_of_the_service_account(places):
    with open("/var/run/secrets/kubernetes.io/serviceaccount/token") as file:
        return len(file.read())


@attempt
def processes_of_other_containers(places):
    named = {content.split(b"\0")[0].rpartition(b"/")[2].decode() for _, content in _processes("cmdline")}
    found = sorted(one for one in named if one in ("pause", "neighbour"))
    if not found:
        raise Stopped(f"only {sorted(named)}")
    return found
