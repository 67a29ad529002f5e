"""Packages of a private index, as wheels that Kaniko installs offline. Called by build.workspace.

Nothing of them is executed. The credential is in pip's environment alone: on no
command line, in no file, and taken out of all that pip says.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from build.errors import Infrastructure
from build.logs import Log
from build.mask import Mask
from build.settings import IndexCredentials
from build.wheels.index_access import is_denied
from plan.errors import BUILD_FAILED, DEPENDENCY_RESOLUTION, PlanError
from plan.packages.dependencies import Declaration
from plan.packages.pip_log import dependency_failure

_PIP = Path(__file__).with_name("confined_pip.py")
_TIMEOUT = 1200.0
_RETRIES = 4
# Far more than the log shows of a line: what is cut off must not be a part of a secret, which no mask knows.
_LINE = 64 << 10
_PR_SET_DUMPABLE = 4
_KEPT_LINES = 200
_LOG = 64 << 10
# Of our own environment: how the outside is reached, nothing else.
_INHERITED = ("PATH", "LANG", "PIP_CERT", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_WHEELS_ONLY = "A private index is used through wheels only: put a wheel of it for this Python there."


def download_wheels(
    declaration: Declaration,
    python: str,
    index: IndexCredentials,
    target: Path,
    log: Log,
    timeout: float = _TIMEOUT,
    retries: int = _RETRIES,
) -> None:
    """Fills `target` with wheels for all that is declared; pip gets at most `timeout` seconds at a time.

    Raises PlanError or Infrastructure.
    """
    if not index.url:
        raise PlanError(
            DEPENDENCY_RESOLUTION,
            "the Secret of the private index has no index-url",
            "Set the key index-url in the Secret named by the project's build.secretRef.",
        )
    target.mkdir(mode=0o755, parents=True, exist_ok=True)
    hide_environment()
    mask = Mask((index.url, index.extra_url), index.username, index.password)
    with tempfile.TemporaryDirectory(prefix="pip-") as home:
        environment = pip_environment(index, Path(home), os.environ) | {"PIP_RETRIES": str(retries)}
        for name, lines in (("requirements", declaration.lines), ("build", declaration.build_requires)):
            if lines:
                arguments = _arguments(declaration, lines, python, Path(home) / name, target)
                log.line(f"downloading wheels for {len(lines)} lines, Python {python}")
                _run(arguments, environment, mask, log, timeout)
    for path in target.iterdir():
        path.chmod(0o644)
    log.line(f"wheels: {len(list(target.iterdir()))} from the private index")


def hide_environment() -> None:
    """Takes /proc/<pid>/environ of this process, where more credentials are, from programs of its user."""
    # Else pip could be made to quote it, as a requirements file. Not granted where a sandbox has no prctl.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def pip_environment(index: IndexCredentials, home: Path, ours: Mapping[str, str]) -> dict[str, str]:
    """What pip is told, with `home` as its private directory; of `ours` only how to reach the outside."""
    environment = {name: ours[name] for name in (*_INHERITED, *_PROXIES) if name in ours}
    environment |= {
        "HOME": str(home),
        "TMPDIR": str(home),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": _with_credentials(index),
        "PIP_NO_INPUT": "1",
        "PIP_NO_COLOR": "1",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_PROGRESS_BAR": "off",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_KEYRING_PROVIDER": "disabled",
        "PIP_TIMEOUT": "30",
        "NETRC": os.devnull,
        "PYTHONUNBUFFERED": "1",
    }
    if index.extra_url:
        environment["PIP_EXTRA_INDEX_URL"] = index.extra_url
    # pip passes over an index without TLS, silently; who names one in the Secret means it.
    plain = [urlsplit(url) for url in (index.url, index.extra_url) if url.startswith("http://")]
    if plain:
        environment["PIP_TRUSTED_HOST"] = " ".join(parts.netloc.rpartition("@")[2] for parts in plain)
    return environment


def _with_credentials(index: IndexCredentials) -> str:
    """The first index alone gets the name and the password; another host has no claim to them."""
    parts = urlsplit(index.url)
    if "@" in parts.netloc or not (index.username or index.password):
        return index.url
    user = f"{quote(index.username, safe='')}:{quote(index.password, safe='')}"
    return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc}"))


def _arguments(
    declaration: Declaration, lines: tuple[str, ...], python: str, place: Path, target: Path
) -> list[str]:
    place.mkdir()
    (place / "requirements.txt").write_text("".join(f"{line}\n" for line in lines))
    arguments = [python, "download", "--only-binary=:all:", "--python-version", python, "--dest", str(target)]
    arguments += ["--find-links", str(target), "-r", str(place / "requirements.txt")]
    if declaration.constraints:
        (place / "constraints.txt").write_text("".join(f"{line}\n" for line in declaration.constraints))
        arguments += ["-c", str(place / "constraints.txt")]
    return arguments


def _run(arguments: list[str], environment: dict[str, str], mask: Mask, log: Log, timeout: float) -> None:
    said: deque[str] = deque(maxlen=_KEPT_LINES)
    command = [sys.executable, "-I", str(_PIP), *arguments]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        late = threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(timeout, stop)
        timer.start()
        try:
            assert process.stdout is not None
            whole = True
            while line := process.stdout.readline(_LINE):
                begins, whole = whole, line.endswith(b"\n")
                if not begins:
                    continue
                text = mask.text(line.decode("utf-8", "replace").rstrip())
                said.append(text)
                log.line(text)
            process.wait()
        finally:
            timer.cancel()
            process.kill()
    if late.is_set():
        raise Infrastructure(f"downloading packages took longer than {timeout:.0f} s")
    if process.returncode:
        raise _failure("\n".join(said)[-_LOG:], environment["PIP_INDEX_URL"])


def _failure(said: str, address: str) -> Exception:
    error = dependency_failure(said)
    if error.reason == DEPENDENCY_RESOLUTION and "(from versions: none)" in said and is_denied(address):
        return PlanError(
            DEPENDENCY_RESOLUTION,
            "the private package index refuses the credentials",
            "Check username and password in the Secret named by the project's build.secretRef.",
        )
    if error.reason == DEPENDENCY_RESOLUTION:
        return PlanError(error.reason, error.message, f"{error.hint} {_WHEELS_ONLY}".strip())
    if error.reason == BUILD_FAILED:
        return Infrastructure(f"downloading packages failed: {error.message}")
    return error
