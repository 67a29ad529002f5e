"""Settings of the TLS ports for pods. Called by the configuration of API server and controller."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from internal_tls.certificate import CertificateInvalid, load

DIRECTORY_VARIABLE = "CREWYARD_INTERNAL_TLS_DIR"
PORT_VARIABLE = "CREWYARD_INTERNAL_TLS_PORT"
PLAIN_VARIABLE = "CREWYARD_INTERNAL_PLAIN"
CONTROLLER_URL_VARIABLE = "CREWYARD_CONTROLLER_TLS_URL"
CONTROLLER_PORT_VARIABLE = "CREWYARD_CONTROLLER_TLS_PORT"
DEFAULT_PORT = 8443
DEFAULT_CONTROLLER_PORT = 9443
_FLAGS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


@dataclass(frozen=True)
class PodTlsSettings:
    """`directory` has the certificate and its key; `plain`: the calls of pods are also served without TLS."""

    directory: Path | None = None
    port: int = DEFAULT_PORT
    plain: bool = True


def parse_flag(text: str) -> bool:
    """Return whether a setting is on. Raises ValueError. The controller's other settings use it, too."""
    if (value := _FLAGS.get(text.lower())) is None:
        raise ValueError("must be on or off, or true or false")
    return value


def parse_pod_tls(environ: Mapping[str, str], http_port: int, wrong: list[str]) -> PodTlsSettings:
    """Parse the settings of the API server's port; append each invalid variable to `wrong`."""
    directory = _directory(environ, wrong)
    port = _port(environ, PORT_VARIABLE, DEFAULT_PORT)
    if not port or (directory is not None and port == http_port):
        wrong.append(f"{PORT_VARIABLE}: must be a port other than CREWYARD_PORT, for example {DEFAULT_PORT}")
    try:
        plain = parse_flag(environ.get(PLAIN_VARIABLE, "").strip() or "on")
    except ValueError as error:
        plain = True
        wrong.append(f"{PLAIN_VARIABLE}: {error}")
    if not plain and directory is None:
        wrong.append(
            f"{PLAIN_VARIABLE} is off without {DIRECTORY_VARIABLE}: no pod could reach the API server; set "
            "the directory of the certificate, or on"
        )
    return PodTlsSettings(directory, port, plain)


def parse_controller_tls(
    environ: Mapping[str, str], http_port: int, plain: bool, wrong: list[str]
) -> PodTlsSettings:
    """Parse the settings of the controller's port; append each invalid variable to `wrong`.

    The directory alone opens no port: the variable is also there where only the API server mounts it.
    """
    if not environ.get(CONTROLLER_URL_VARIABLE, "").strip():
        return PodTlsSettings(None, DEFAULT_CONTROLLER_PORT, plain)
    directory = _directory(environ, wrong)
    if not environ.get(DIRECTORY_VARIABLE, "").strip():
        wrong.append(
            f"{CONTROLLER_URL_VARIABLE} is set without {DIRECTORY_VARIABLE}: set the directory of the "
            "certificate"
        )
    port = _port(environ, CONTROLLER_PORT_VARIABLE, DEFAULT_CONTROLLER_PORT)
    if not port or port == http_port:
        wrong.append(
            f"{CONTROLLER_PORT_VARIABLE}: must be a port other than CREWYARD_CONTROLLER_PORT, for example "
            f"{DEFAULT_CONTROLLER_PORT}"
        )
    return PodTlsSettings(directory, port, plain)


def _directory(environ: Mapping[str, str], wrong: list[str]) -> Path | None:
    text = environ.get(DIRECTORY_VARIABLE, "").strip()
    if not text:
        return None
    try:
        load(Path(text))
    except CertificateInvalid as error:
        wrong.append(f"{DIRECTORY_VARIABLE}: {error}")
    return Path(text)


def _port(environ: Mapping[str, str], variable: str, default: int) -> int:
    """Return the port; 0 if it is invalid."""
    text = environ.get(variable, "").strip() or str(default)
    return int(text) if text.isdecimal() and 1 <= int(text) <= 65535 else 0
