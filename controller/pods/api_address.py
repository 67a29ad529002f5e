"""How pods reach the API server: its address, and by TLS the authorities that they accept. Pure.

Called by `controller.config` and the pod builders.
"""

from dataclasses import dataclass
from typing import Any

from egress.ca_bundle import checked_certificates


@dataclass(frozen=True)
class ApiAddress:
    """`tls_url` and `authorities` (PEM) are empty without TLS; `plain`: pods may use `url` too."""

    url: str
    tls_url: str = ""
    authorities: str = ""
    plain: bool = True

    def run_env(self) -> list[dict[str, Any]]:
        """Return the variables of a run pod.

        A runner of an earlier version, in an image built long ago, knows the first one only.
        """
        if not self.tls_url:
            return _variables(CREWYARD_INTERNAL_URL=self.url)
        return _variables(
            CREWYARD_INTERNAL_URL=self.url if self.plain else self.tls_url,
            CREWYARD_INTERNAL_TLS_URL=self.tls_url,
            CREWYARD_INTERNAL_CA=self.authorities,
        )

    def build_env(self) -> list[dict[str, Any]]:
        """Return the variables of a build pod, whose image is that of the service."""
        if not self.tls_url:
            return _variables(CREWYARD_INTERNAL_URL=self.url)
        return _variables(CREWYARD_INTERNAL_URL=self.tls_url, CREWYARD_INTERNAL_CA=self.authorities)


def parse_tls_url(text: str) -> str:
    """Parse CREWYARD_INTERNAL_TLS_URL or CREWYARD_CONTROLLER_TLS_URL. Raises ValueError."""
    if not text.startswith("https://"):
        raise ValueError(
            f"{text!r} is not an https URL, such as https://crewyard-api.crewyard-system.svc:8443"
        )
    return text.rstrip("/")


def parse_authorities(text: str) -> str:
    """Parse the certificates of CREWYARD_INTERNAL_CA. Raises ValueError."""
    return checked_certificates(text)


def api_address_problem(address: ApiAddress, controller_tls_url: str) -> str | None:
    """Return what is missing in the settings; None if nothing is."""
    if controller_tls_url and not address.tls_url:
        return (
            "CREWYARD_CONTROLLER_TLS_URL is set without CREWYARD_INTERNAL_TLS_URL: set the https "
            "URL of the API server too"
        )
    if bool(address.tls_url) != bool(address.authorities):
        return (
            "CREWYARD_INTERNAL_TLS_URL and CREWYARD_INTERNAL_CA or CREWYARD_INTERNAL_CA_FILE belong "
            "together: set the https URL of the API server for pods, and the certificates of the authorities "
            "that they accept"
        )
    if not address.plain and not address.tls_url:
        return "CREWYARD_INTERNAL_PLAIN is off without CREWYARD_INTERNAL_TLS_URL: no pod would reach the API"
    return None


def _variables(**values: str) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in values.items()]
