"""Settings of the TLS port for pods. Called by `api.config`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from api.tls.certificate import CertificateInvalid, load

DIRECTORY_VARIABLE = "CREWYARD_INTERNAL_TLS_DIR"
PORT_VARIABLE = "CREWYARD_INTERNAL_TLS_PORT"
PLAIN_VARIABLE = "CREWYARD_INTERNAL_PLAIN"
DEFAULT_PORT = 8443
_FLAGS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


@dataclass(frozen=True)
class PodTlsSettings:
    """`directory` has the certificate and its key; `plain`: the calls of pods are also served without TLS."""

    directory: Path | None = None
    port: int = DEFAULT_PORT
    plain: bool = True


def parse_pod_tls(environ: Mapping[str, str], http_port: int, wrong: list[str]) -> PodTlsSettings:
    """Parse the settings; append each invalid variable to `wrong`."""
    text = environ.get(DIRECTORY_VARIABLE, "").strip()
    directory = Path(text) if text else None
    if directory is not None:
        try:
            load(directory)
        except CertificateInvalid as error:
            wrong.append(f"{DIRECTORY_VARIABLE}: {error}")
    port_text = environ.get(PORT_VARIABLE, "").strip() or str(DEFAULT_PORT)
    port = int(port_text) if port_text.isdecimal() else 0
    if not 1 <= port <= 65535 or (directory is not None and port == http_port):
        wrong.append(f"{PORT_VARIABLE}: must be a port other than CREWYARD_PORT, for example {DEFAULT_PORT}")
    plain = _FLAGS.get(environ.get(PLAIN_VARIABLE, "").strip().lower() or "on")
    if plain is None:
        wrong.append(f"{PLAIN_VARIABLE}: must be on or off")
    elif not plain and directory is None:
        wrong.append(
            f"{PLAIN_VARIABLE} is off without {DIRECTORY_VARIABLE}: no pod could reach the API server; set "
            "the directory of the certificate, or on"
        )
    return PodTlsSettings(directory, port, plain is not False)
