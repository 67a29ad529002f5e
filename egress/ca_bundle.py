"""`python -m egress.ca_bundle COMMAND …`: run COMMAND with CREWYARD_CA added to the system's CA bundle.

The installation's own CA certificates (PEM) come in a variable, because a pod then needs no volume. Libraries
read SSL_CERT_FILE on import, and it replaces the system's bundle; therefore both go into one file before the
process starts. Wraps api, controller and build steps where the installation has such certificates.
"""

import os
import re
import ssl
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

CA_VARIABLE = "CREWYARD_CA"
BUNDLE_PATH = Path("/tmp/crewyard-authorities.crt")
LIBRARY_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
MAX_CHARACTERS = 32 * 1024
"""Limit of the variable, which every build pod carries."""
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----\s.+?\s-----END CERTIFICATE-----", re.DOTALL)


def checked_certificates(text: str) -> str:
    """Return only the certificates in `text`. Raises ValueError for none, a damaged one or a long text."""
    if "PRIVATE KEY" in text:
        raise ValueError("contains a private key; give certificates only")
    if len(text) > MAX_CHARACTERS:
        raise ValueError(
            f"has {len(text)} characters, more than {MAX_CHARACTERS}; "
            "give only the CAs of your own, not a whole bundle"
        )
    blocks = _BLOCK.findall(text)
    if not blocks:
        raise ValueError("contains no certificate in PEM format (-----BEGIN CERTIFICATE-----)")
    for number, block in enumerate(blocks, 1):
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=block)
        except (ssl.SSLError, TypeError) as error:
            raise ValueError(f"certificate {number} of {len(blocks)} is malformed; copy it again") from error
    return "\n".join(blocks) + "\n"


def system_bundle_paths() -> list[Path]:
    """Return the paths where the system's CA bundle may be."""
    default = ssl.get_default_verify_paths().openssl_cafile
    return [
        Path("/etc/ssl/certs/ca-certificates.crt"),
        Path("/etc/pki/tls/certs/ca-bundle.crt"),
        Path(default),
    ]


def bundle(own: str, candidates: Iterable[Path]) -> str:
    """Return the system's bundle, from the first candidate that exists, followed by `own`."""
    system = next((path.read_text(errors="replace") for path in candidates if path.is_file()), "")
    return f"{system.rstrip()}\n{checked_certificates(own)}".lstrip("\n")


def environment(inherited: Mapping[str, str], file: Path) -> dict[str, str]:
    """Return the environment that makes libraries read `file`."""
    return {**inherited, **dict.fromkeys(LIBRARY_VARIABLES, str(file))}


def main(arguments: Sequence[str], inherited: Mapping[str, str], file: Path = BUNDLE_PATH) -> None:
    """Replace this process by the command. Exit with 1 and a message where that is impossible."""
    if not arguments:
        sys.exit("usage: python3 -m egress.ca_bundle COMMAND …")
    env = dict(inherited)
    if env.get(CA_VARIABLE, "").strip():
        try:
            text = bundle(env[CA_VARIABLE], system_bundle_paths())
        except ValueError as error:
            sys.exit(f"{CA_VARIABLE}: {error}")
        temporary = file.with_suffix(f".{os.getpid()}")
        temporary.write_text(text)
        temporary.replace(file)
        env = environment(env, file)
    os.execvpe(arguments[0], list(arguments), env)


if __name__ == "__main__":
    main(sys.argv[1:], os.environ)
