"""What process 1 is told by its environment. Read once, at the very start, by `main`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

PREFIX = "CREWYARD_"


class SettingsInvalid(ValueError):
    """A variable that the pod's template must set is missing or no number."""


class Settings:
    """One run pod's settings. Times are in seconds."""

    __slots__ = (
        "app", "cgroup", "flush_grace", "pod_uid", "report_seconds", "run", "run_id", "run_uid",
        "scan_seconds", "scratch", "secrets", "start_timeout", "stop_grace", "storage_limit",
        "termination_log", "token", "url",
    )  # fmt: skip

    def __init__(self, variables: Mapping[str, str]) -> None:
        """Raises SettingsInvalid with the variable's name."""
        self.url = _text(variables, "INTERNAL_URL")
        self.run = _text(variables, "RUN")
        self.run_uid = _text(variables, "RUN_UID")
        self.token = _text(variables, "TOKEN")
        self.pod_uid = _text(variables, "POD_UID")
        self.run_id = "run_" + self.run.removeprefix("run-")
        self.start_timeout = _seconds(variables, "START_TIMEOUT", 300.0)
        self.storage_limit = _bytes(variables, "STORAGE_LIMIT")
        # Names of the project's variables, whose values no event shows.
        self.secrets = variables.get(PREFIX + "SECRETS", "").split(",")
        # The following have one value in every pod; the variables exist for the tests.
        self.app = variables.get(PREFIX + "APP", "/app")
        self.cgroup = variables.get(PREFIX + "CGROUP", "/sys/fs/cgroup")
        self.termination_log = variables.get(PREFIX + "TERMINATION_LOG", "/dev/termination-log")
        self.stop_grace = _seconds(variables, "STOP_GRACE", 10.0)
        self.flush_grace = _seconds(variables, "FLUSH_GRACE", 45.0)
        self.report_seconds = _seconds(variables, "REPORT_SECONDS", 600.0)
        self.scan_seconds = _seconds(variables, "SCAN_SECONDS", 1.0)
        self.scratch = variables.get(PREFIX + "SCRATCH", "/tmp:/var/tmp:/run/lock").split(":")


def take(environ: MutableMapping[str, str]) -> Settings:
    """The settings; no CREWYARD_ variable is left in `environ`, so that no child can inherit one."""
    ours = {name: environ.pop(name) for name in list(environ) if name.startswith(PREFIX)}
    return Settings(ours)


def _text(variables: Mapping[str, str], name: str) -> str:
    value = variables.get(PREFIX + name, "")
    if not value:
        raise SettingsInvalid(f"{PREFIX}{name} is not set: the pod's template must set it")
    return value


def _bytes(variables: Mapping[str, str], name: str) -> int | None:
    text = variables.get(PREFIX + name, "")
    if text and not text.isdecimal():
        raise SettingsInvalid(f"{PREFIX}{name} is {text!r}: it must be a number of bytes")
    return int(text) if text and int(text) > 0 else None


def _seconds(variables: Mapping[str, str], name: str, default: float) -> float:
    text = variables.get(PREFIX + name, "")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 10**8:
        raise SettingsInvalid(f"{PREFIX}{name} is {text!r}: it must be a number of seconds")
    return value
