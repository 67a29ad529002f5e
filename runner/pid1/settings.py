"""Settings of process 1 from environment variables. Read once, at the start, by `main`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

PREFIX = "CREWYARD_"


class RunnerSettingsInvalid(ValueError):
    """A variable that the pod template must set is missing or not a number."""


class RunnerSettings:
    """Settings of one run pod. Times are in seconds."""

    __slots__ = (
        "app", "authorities", "cgroup", "entrypoint", "flush_grace", "framework", "pod_uid", "report_seconds",
        "run", "run_uid", "scan_seconds", "scratch", "secrets", "start_timeout", "stop_grace",
        "storage_limit", "termination_log", "token", "url", "warm",
    )  # fmt: skip

    def __init__(self, variables: Mapping[str, str]) -> None:
        """Read the variables. Raises RunnerSettingsInvalid that names the variable."""
        # Runners of earlier versions know the second one only.
        self.url = variables.get(PREFIX + "INTERNAL_TLS_URL", "") or _text(variables, "INTERNAL_URL")
        # The only authorities whose certificate of the API server is accepted.
        self.authorities = variables.get(PREFIX + "INTERNAL_CA", "")
        # The name of a pod that was started before its run; it gets run, uid and token later.
        self.warm = variables.get(PREFIX + "WARM", "")
        self.entrypoint = variables.get(PREFIX + "ENTRYPOINT", "")
        self.framework = variables.get(PREFIX + "FRAMEWORK", "")
        self.run = "" if self.warm else _text(variables, "RUN")
        self.run_uid = "" if self.warm else _text(variables, "RUN_UID")
        self.token = _text(variables, "TOKEN")
        self.pod_uid = _text(variables, "POD_UID")
        self.start_timeout = _seconds(variables, "START_TIMEOUT", 300.0)
        self.storage_limit = _bytes(variables, "STORAGE_LIMIT")
        # Names of the project's variables; events mask their values.
        self.secrets = variables.get(PREFIX + "SECRETS", "").split(",")
        # Constant in all pods; the variables exist for tests.
        self.app = variables.get(PREFIX + "APP", "/app")
        self.cgroup = variables.get(PREFIX + "CGROUP", "/sys/fs/cgroup")
        self.termination_log = variables.get(PREFIX + "TERMINATION_LOG", "/dev/termination-log")
        self.stop_grace = _seconds(variables, "STOP_GRACE", 10.0)
        self.flush_grace = _seconds(variables, "FLUSH_GRACE", 45.0)
        self.report_seconds = _seconds(variables, "REPORT_SECONDS", 600.0)
        self.scan_seconds = _seconds(variables, "SCAN_SECONDS", 1.0)
        self.scratch = variables.get(PREFIX + "SCRATCH", "/tmp:/var/tmp:/run/lock").split(":")

    @property
    def run_id(self) -> str:
        """The run's id in the API; empty while the pod waits for a run."""
        return "run_" + self.run.removeprefix("run-") if self.run else ""

    def bind(self, run: str, run_uid: str, token: str) -> None:
        """Make this the pod of a run."""
        self.run, self.run_uid, self.token = run, run_uid, token


def pop_settings(environ: MutableMapping[str, str]) -> RunnerSettings:
    """Return the settings and remove all CREWYARD_ variables from `environ`, so no child inherits them."""
    ours = {name: environ.pop(name) for name in list(environ) if name.startswith(PREFIX)}
    return RunnerSettings(ours)


def _text(variables: Mapping[str, str], name: str) -> str:
    value = variables.get(PREFIX + name, "")
    if not value:
        raise RunnerSettingsInvalid(f"{PREFIX}{name} is not set: the pod template must set it")
    return value


def _bytes(variables: Mapping[str, str], name: str) -> int | None:
    text = variables.get(PREFIX + name, "")
    if text and not text.isdecimal():
        raise RunnerSettingsInvalid(f"{PREFIX}{name} is {text!r}: it must be a number of bytes")
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
        raise RunnerSettingsInvalid(f"{PREFIX}{name} is {text!r}: it must be a number of seconds")
    return value
