"""A process of the ground: started, found again, waited for, stopped.

`Program` is a value made by the files of `dev/cluster`; the embedded ground
applies it. A program that runs already is left alone, unless what it was
started with has changed since.
"""

import hashlib
import json
import resource
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dev.errors import DevClusterError
from dev.process import probe as probes
from dev.process import process
from dev.process.command import tail
from dev.settings import Settings

_MAX_LOG_BYTES = 20 * 1024 * 1024
_MAX_OPEN_FILES = 1048576
_RESTART_DELAY_SECONDS = 1.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class ProcessSpec:
    """What to run. `files` are written before the start; `grace` is the time in seconds that SIGTERM gets.

    One that ends before it answers is started `again` so often, within its `startup` seconds.
    """

    name: str
    argv: tuple[str, ...]
    probe: probes.Probe | None
    files: Mapping[Path, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    startup_seconds: float = 60.0
    grace_seconds: float = 10.0
    restarts: int = 0

    @property
    def fingerprint(self) -> str:
        """A hash of all that the process is started with. The program file counts by time and size."""
        binary = Path(self.argv[0]).stat()
        files = sorted((str(path), text) for path, text in self.files.items())
        variables = sorted(self.environment.items())
        parts = [list(self.argv), files, variables, binary.st_mtime_ns, binary.st_size]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def pid_file(settings: Settings, name: str) -> Path:
    """Where the program's process is recorded."""
    return settings.run / f"{name}.pid"


def log_file(settings: Settings, name: str) -> Path:
    """Where all output of the program goes."""
    return settings.logs / f"{name}.log"


def running(settings: Settings, name: str) -> process.ProcessRecord | None:
    """The record of the program's live process, if there is one."""
    return process.read(pid_file(settings, name))


def start(settings: Settings, program: ProcessSpec) -> bool:
    """Makes sure that the program runs as described. True if it had to be started.

    Raises GroundError where it ended at once, unless `wait_ready` starts it again.
    """
    record = running(settings, program.name)
    if record and record.fingerprint == program.fingerprint:
        return False
    if record:
        stop(settings, program.name, program.grace_seconds)
    for path, text in program.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    log = log_file(settings, program.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _MAX_LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as output:
        child = subprocess.Popen(
            program.argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=program.cwd or settings.state,
            env={"PATH": f"{settings.bin}:{_PATH}", "HOME": "/root", **program.environment},
            start_new_session=True,
            preexec_fn=_raise_open_files,
        )
    identity = process.identity_of(child.pid)
    if identity is not None:
        record = process.ProcessRecord(identity.pid, identity.started, program.fingerprint)
        process.write(pid_file(settings, program.name), record)
    elif not program.restarts:
        raise DevClusterError(f"{program.name} ended at once. Its log is {log}; it ends:\n{tail(log)}")
    return True


def _raise_open_files() -> None:
    # A node holds many connections and watches open; the soft limit of a login shell is 1024.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = _MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def wait_ready(settings: Settings, program: ProcessSpec) -> None:
    """Waits until the program answers. Raises GroundError with its last lines if it ended or is too slow."""
    deadline = time.monotonic() + program.startup_seconds
    pause, restarts = 0.02, program.restarts
    log = log_file(settings, program.name)
    while program.probe:
        reason = probes.problem(program.probe)
        if reason is None:
            return
        if running(settings, program.name) is None:
            if not restarts:
                raise DevClusterError(f"{program.name} ended. Its log is {log}; it ends:\n{tail(log)}")
            restarts -= 1
            time.sleep(_RESTART_DELAY_SECONDS)
            start(settings, program)
        if time.monotonic() > deadline:
            raise DevClusterError(
                f"{program.name} did not answer within {program.startup_seconds:.0f} s ({reason}). "
                f"Its log is {log}; it ends:\n{tail(log)}"
            )
        time.sleep(pause)
        pause = min(pause * 1.5, 0.5)


def stop(settings: Settings, name: str, grace: float = 10.0) -> bool:
    """Ends the program if it runs and removes its pid file. False if it is still there."""
    record = running(settings, name)
    stopped = record is None or process.stop(record.identity, grace)
    if stopped:
        pid_file(settings, name).unlink(missing_ok=True)
    return stopped
