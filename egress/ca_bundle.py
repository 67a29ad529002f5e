"""`python -m egress.ca_bundle COMMAND …`: runs COMMAND, which trusts CREWYARD_CA besides the system.

An installation's own authorities (PEM) come as a variable, so that a pod needs no volume for them. Libraries
read SSL_CERT_FILE as they are imported, and it takes the place of the system's list: both go into one file,
before the process begins. In front of api, controller and build steps where there are such authorities.
"""

import os
import re
import ssl
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

VARIABLE = "CREWYARD_CA"
FILE = Path("/tmp/crewyard-authorities.crt")
READERS = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
LONGEST = 32 * 1024
"""In a variable of every build pod."""
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----\s.+?\s-----END CERTIFICATE-----", re.DOTALL)


def check(text: str) -> str:
    """The certificates of a text, nothing else of it. Raises ValueError for none, a damaged one, too many."""
    if "PRIVATE KEY" in text:
        raise ValueError("it has a private key: give certificates only")
    if len(text) > LONGEST:
        raise ValueError(
            f"it has {len(text)} characters, more than {LONGEST}: give your own authorities, no whole bundle"
        )
    found = _BLOCK.findall(text)
    if not found:
        raise ValueError("it has no certificate in PEM (-----BEGIN CERTIFICATE-----)")
    for number, block in enumerate(found, 1):
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=block)
        except (ssl.SSLError, TypeError) as error:
            raise ValueError(f"certificate {number} of {len(found)} cannot be read: copy it anew") from error
    return "\n".join(found) + "\n"


def places() -> list[Path]:
    """Where the system's own list may be."""
    default = ssl.get_default_verify_paths().openssl_cafile
    return [
        Path("/etc/ssl/certs/ca-certificates.crt"),
        Path("/etc/pki/tls/certs/ca-bundle.crt"),
        Path(default),
    ]


def bundle(own: str, candidates: Iterable[Path]) -> str:
    """The system's list, of the first place that has one, and these."""
    system = next((path.read_text(errors="replace") for path in candidates if path.is_file()), "")
    return f"{system.rstrip()}\n{check(own)}".lstrip("\n")


def environment(inherited: Mapping[str, str], file: Path) -> dict[str, str]:
    """The environment in which libraries read that file."""
    return {**inherited, **dict.fromkeys(READERS, str(file))}


def main(arguments: Sequence[str], inherited: Mapping[str, str], file: Path = FILE) -> None:
    """Becomes the command, and does not return. Ends with 1 and a line where it cannot."""
    if not arguments:
        sys.exit("usage: python3 -m egress.ca_bundle COMMAND …")
    found = dict(inherited)
    if found.get(VARIABLE, "").strip():
        try:
            text = bundle(found[VARIABLE], places())
        except ValueError as error:
            sys.exit(f"{VARIABLE}: {error}")
        fresh = file.with_suffix(f".{os.getpid()}")
        fresh.write_text(text)
        fresh.replace(file)
        found = environment(found, file)
    os.execvpe(arguments[0], list(arguments), found)


if __name__ == "__main__":
    main(sys.argv[1:], os.environ)
