"""The authorities that pods accept, from a file of a mounted Secret or ConfigMap.

Read at the start, and again when the file has changed: new pods then accept other authorities without a
restart. Called by `controller.config`, and by `controller.process` while it leads.
"""

import asyncio
from pathlib import Path

import structlog

from egress.ca_bundle import MAX_CHARACTERS, checked_certificates
from internal_tls.reload import ReloadedFiles

REFRESH_SECONDS = 10.0
_log = structlog.get_logger("controller")


class AuthorityFile(ReloadedFiles[str, str]):
    """Certificates in PEM. A changed file that is invalid changes nothing."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises ValueError."""
        super().__init__(lambda: _read(path), checked_certificates)
        self._path = path

    async def keep(self) -> None:
        """Read the file again without end, and log each change."""
        while True:
            if self.refresh():
                if self.problem is None:
                    _log.info("internal_ca_loaded", path=str(self._path))
                else:
                    _log.error("internal_ca_rejected", path=str(self._path), problem=self.problem)
            await asyncio.sleep(REFRESH_SECONDS)


def parse_authority_file(text: str) -> AuthorityFile:
    """Read the file of CREWYARD_INTERNAL_CA_FILE. Raises ValueError."""
    return AuthorityFile(Path(text))


def _read(path: Path) -> str:
    """Return the text, cut where it is too long to be accepted. Raises ValueError."""
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            return file.read(MAX_CHARACTERS + 1)
    except OSError as error:
        raise ValueError(
            f"{path} is not readable ({error.strerror}); mount a Secret or a ConfigMap there"
        ) from error
