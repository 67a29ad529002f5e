"""Managed process of the dev cluster: start, detect, wait, stop.

`ProcessSpec` is a value; the dev clusters apply it. A process that is running already stays unchanged, unless
its start parameters have changed.
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
    """What to run. `files` are written before the start; `grace_seconds` is the time after SIGTERM.

    A process that exits before it is ready is started again up to `restarts` times within `startup_seconds`.
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
        """A hash of all start parameters. The binary counts by modification time and size."""
        binary = Path(self.argv[0]).stat()
        files = sorted((str(path), text) for path, text in self.files.items())
        variables = sorted(self.environment.items())
        parts = [list(self.argv), files, variables, binary.st_mtime_ns, binary.st_size]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def pid_file(settings: Settings, name: str) -> Path:
    """Return the path of the process's pid file."""
    return settings.run / f"{name}.pid"


def log_file(settings: Settings, name: str) -> Path:
    """Return the path of the process's log."""
    return settings.logs / f"{name}.log"


def running(settings: Settings, name: str) -> process.ProcessRecord | None:
    """Return the record of the live process, if there is one."""
    return process.read(pid_file(settings, name))


def start(settings: Settings, spec: ProcessSpec) -> bool:
    """Ensure that the process is running as described. Return whether it was started.

    Raises DevClusterError if it exited immediately, unless `wait_ready` starts it again.
    """
    record = running(settings, spec.name)
    if record and record.fingerprint == spec.fingerprint:
        return False
    if record:
        stop(settings, spec.name, spec.grace_seconds)
    for path, text in spec.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    log = log_file(settings, spec.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > _MAX_LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as output:
        child = subprocess.Popen(
            spec.argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=spec.cwd or settings.state,
            env={"PATH": f"{settings.bin}:{_PATH}", "HOME": "/root", **spec.environment},
            start_new_session=True,
            preexec_fn=_raise_open_files,
        )
    identity = process.identity_of(child.pid)
    if identity is not None:
        record = process.ProcessRecord(identity.pid, identity.started, spec.fingerprint)
        process.write(pid_file(settings, spec.name), record)
    elif not spec.restarts:
        raise DevClusterError(f"{spec.name} exited immediately. Last lines of {log}:\n{tail(log)}")
    return True


def _raise_open_files() -> None:
    # A node has many open connections and watches; the soft limit of a login shell is 1024.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = _MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _MAX_OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def wait_ready(settings: Settings, spec: ProcessSpec) -> None:
    """Wait until the process is ready. Raises DevClusterError with its log if it exits or times out."""
    deadline = time.monotonic() + spec.startup_seconds
    pause, restarts = 0.02, spec.restarts
    log = log_file(settings, spec.name)
    while spec.probe:
        reason = probes.problem(spec.probe)
        if reason is None:
            return
        if running(settings, spec.name) is None:
            if not restarts:
                raise DevClusterError(f"{spec.name} exited. Last lines of {log}:\n{tail(log)}")
            restarts -= 1
            time.sleep(_RESTART_DELAY_SECONDS)
            start(settings, spec)
        if time.monotonic() > deadline:
            raise DevClusterError(
                f"{spec.name} was not ready within {spec.startup_seconds:.0f} s ({reason}). "
                f"Last lines of {log}:\n{tail(log)}"
            )
        time.sleep(pause)
        pause = min(pause * 1.5, 0.5)


def stop(settings: Settings, name: str, grace: float = 10.0) -> bool:
    """Stop the process if it is running and remove its pid file. Return False if it is still alive."""
    record = running(settings, name)
    stopped = record is None or process.stop(record.identity, grace)
    if stopped:
        pid_file(settings, name).unlink(missing_ok=True)
    return stopped
