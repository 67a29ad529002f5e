"""Download of packages from a private index as wheels for an offline install. Called by build.workspace.

Never executes code of the packages. The credential is only in pip's environment: on no command line, in no
file, and masked in pip's output.
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

from build.errors import InfrastructureError, is_temporary
from build.logs import BuildLog
from build.mask import PipOutputMask
from build.settings import IndexCredentials
from build.wheels.index_access import index_status
from plan.errors import BUILD_FAILED, DEPENDENCY_RESOLUTION, PlanError
from plan.packages.dependencies import DependencyDeclaration
from plan.packages.pip_log import dependency_failure

_PIP = Path(__file__).with_name("confined_pip.py")
_TIMEOUT_SECONDS = 1200.0
_PIP_RETRIES = 4
# Far longer than a log line: a secret must not be split at the limit, because the mask would miss its parts.
_MAX_LINE_BYTES = 64 << 10
_PR_SET_DUMPABLE = 4
_MAX_KEPT_LINES = 200
_MAX_LOG_BYTES = 64 << 10
# Inherited variables: network access only.
_INHERITED = ("PATH", "LANG", "PIP_CERT", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_WHEELS_ONLY = "A private index must offer wheels: upload a wheel of the package for this Python."


def download_wheels(
    declaration: DependencyDeclaration,
    python: str,
    index: IndexCredentials,
    target: Path,
    log: BuildLog,
    timeout: float = _TIMEOUT_SECONDS,
    retries: int = _PIP_RETRIES,
) -> None:
    """Download wheels for the declaration to `target`; each run of pip gets at most `timeout` seconds.

    Raises PlanError or InfrastructureError.
    """
    if not index.url:
        raise PlanError(
            DEPENDENCY_RESOLUTION,
            "the Secret of the private index has no key index-url",
            "Set the key index-url in the Secret named by the project's build.secretRef.",
        )
    target.mkdir(mode=0o755, parents=True, exist_ok=True)
    hide_environment()
    mask = PipOutputMask((index.url, index.extra_url), index.username, index.password)
    with tempfile.TemporaryDirectory(prefix="pip-") as home:
        environment = pip_environment(index, Path(home), os.environ) | {"PIP_RETRIES": str(retries)}
        required = (*declaration.lines, *declaration.direct)
        for name, lines, complete in (
            ("requirements", required, declaration.locked),
            ("added", declaration.added, False),
            ("build", declaration.build_requires, False),
        ):
            if lines:
                arguments = _arguments(declaration, lines, complete, python, Path(home) / name, target)
                log.line(f"downloading wheels for {len(lines)} lines, Python {python}")
                _run(arguments, environment, mask, log, timeout)
    for path in target.iterdir():
        path.chmod(0o644)
    log.line(f"wheels: {len(list(target.iterdir()))} from the private index")


def hide_environment() -> None:
    """Make /proc/<pid>/environ of this process, which has more credentials, unreadable to subprocesses."""
    # Otherwise a requirements file could include it and pip would print it. No effect without prctl.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def pip_environment(index: IndexCredentials, home: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return pip's environment: `home` as its private directory; of `inherited` only network variables."""
    environment = {name: inherited[name] for name in (*_INHERITED, *_PROXIES) if name in inherited}
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
    # pip silently skips an index without TLS; one in the Secret is intended.
    insecure = [urlsplit(url) for url in (index.url, index.extra_url) if url.startswith("http://")]
    if insecure:
        environment["PIP_TRUSTED_HOST"] = " ".join(parts.netloc.rpartition("@")[2] for parts in insecure)
    return environment


def _with_credentials(index: IndexCredentials) -> str:
    """Return the URL of the first index with credentials; other hosts never get them."""
    parts = urlsplit(index.url)
    if "@" in parts.netloc or not (index.username or index.password):
        return index.url
    user = f"{quote(index.username, safe='')}:{quote(index.password, safe='')}"
    return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc}"))


def _arguments(
    declaration: DependencyDeclaration,
    lines: tuple[str, ...],
    complete: bool,
    python: str,
    directory: Path,
    target: Path,
) -> list[str]:
    """Return pip's arguments; `complete`: the lines have the dependencies of their packages, too."""
    directory.mkdir()
    (directory / "requirements.txt").write_text("".join(f"{line}\n" for line in lines))
    arguments = [python, "download", "--only-binary=:all:", "--python-version", python, "--dest", str(target)]
    arguments += ["--find-links", str(target), "-r", str(directory / "requirements.txt")]
    if complete:
        arguments.append("--no-deps")
    if declaration.constraints:
        (directory / "constraints.txt").write_text("".join(f"{line}\n" for line in declaration.constraints))
        arguments += ["-c", str(directory / "constraints.txt")]
    return arguments


def _run(
    arguments: list[str], environment: dict[str, str], mask: PipOutputMask, log: BuildLog, timeout: float
) -> None:
    output: deque[str] = deque(maxlen=_MAX_KEPT_LINES)
    command = [sys.executable, "-I", str(_PIP), *arguments]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        timed_out = threading.Event()

        def stop() -> None:
            timed_out.set()
            process.kill()

        timer = threading.Timer(timeout, stop)
        timer.start()
        try:
            assert process.stdout is not None
            line_complete = True
            while line := process.stdout.readline(_MAX_LINE_BYTES):
                at_line_start, line_complete = line_complete, line.endswith(b"\n")
                if not at_line_start:
                    continue
                text = mask.text(line.decode("utf-8", "replace").rstrip())
                output.append(text)
                log.line(text)
            process.wait()
        finally:
            timer.cancel()
            process.kill()
    if timed_out.is_set():
        raise InfrastructureError(f"downloading packages took longer than {timeout:.0f} s")
    if process.returncode:
        raise _failure("\n".join(output)[-_MAX_LOG_BYTES:], environment["PIP_INDEX_URL"])


def _failure(output: str, address: str) -> Exception:
    error = dependency_failure(output)
    if error.reason == DEPENDENCY_RESOLUTION and "(from versions: none)" in output:
        status = index_status(address) or 0
        if status in (401, 403):
            return PlanError(
                DEPENDENCY_RESOLUTION,
                "the private package index rejects the credentials",
                "Check username and password in the Secret named by the project's build.secretRef.",
            )
        if is_temporary(status):
            return InfrastructureError(f"downloading packages failed: the package index answered {status}")
    if error.reason == DEPENDENCY_RESOLUTION:
        return PlanError(error.reason, error.message, f"{error.hint} {_WHEELS_ONLY}".strip())
    if error.reason == BUILD_FAILED:
        return InfrastructureError(f"downloading packages failed: {error.message}")
    return error
