"""Egress of build pods: HTTP proxies and CA certificates of the installation. Pure.

Crews never get them. Code that a dependency executes during installation sees the proxies, so their URLs
must have no password. Called by `controller.config` and the pod builders.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from egress import ca_bundle as authorities

_NO_PROXY = ("localhost", "127.0.0.1", ".svc", ".cluster.local")
"""Addresses in the cluster bypass the proxy."""
_PROXY_FIELDS = ("http", "https", "except")
CA_FILE = "ca.crt"
"""CA bundle in the workspace of a dependencies pod; read by Kaniko and pip."""


@dataclass(frozen=True)
class PodEgress:
    """Egress settings: `proxies` by variable name; `authorities` as PEM, or empty."""

    proxies: Mapping[str, str] = field(default_factory=dict)
    authorities: str = ""

    def command(self, command: list[str]) -> list[str]:
        """Return a command wrapped to trust the configured authorities."""
        return ["python3", "-m", "egress.ca_bundle", *command] if self.authorities else command

    def env(self) -> list[dict[str, Any]]:
        """Return the variables of a service container."""
        variables = {
            **self.proxies,
            **({authorities.CA_VARIABLE: self.authorities} if self.authorities else {}),
        }
        return [{"name": name, "value": value} for name, value in variables.items()]

    def kaniko_env(self, workspace: str) -> list[dict[str, Any]]:
        """Return Kaniko's own variables: it fetches the base image."""
        trusted = {"SSL_CERT_FILE": f"{workspace}/{CA_FILE}"} if self.authorities else {}
        return [{"name": name, "value": value} for name, value in {**self.proxies, **trusted}.items()]

    def install_env(self) -> list[dict[str, Any]]:
        """Return the variables of an installation.

        Some programs read one spelling only: apt and curl the lower case.
        """
        return [
            {"name": spelling, "value": value}
            for name, value in self.proxies.items()
            for spelling in (name, name.lower())
        ]

    def kaniko_arguments(self) -> list[str]:
        """Return flags that pass the proxies to installations in Kaniko without storing them in a layer."""
        return [f"--build-arg={entry['name']}={entry['value']}" for entry in self.install_env()]


def parse_authorities(text: str) -> str:
    """Parse the certificates of CREWYARD_CA. Raises ValueError."""
    return authorities.checked_certificates(text)


def parse_proxies(text: str) -> dict[str, str]:
    """Parse CREWYARD_BUILD_PROXIES into variables. Raises ValueError that names the entry."""
    settings = json.loads(text)
    if not isinstance(settings, dict) or not all(isinstance(value, str) for value in settings.values()):
        raise ValueError(
            'must be a JSON object of strings, such as {"https": "http://proxy.example.com:3128"}'
        )
    for name, value in settings.items():
        if name not in _PROXY_FIELDS:
            raise ValueError(f"{name!r} is not one of {', '.join(_PROXY_FIELDS)}")
        if name != "except" and "@" in value:
            # The message must not repeat the value.
            raise ValueError(f"{name}: builds can read the URL, so it must have no user and no password")
        if name != "except" and value and urlsplit(value).scheme not in ("http", "https"):
            raise ValueError(f"{name}: {value!r} is not an http URL")
    variables = {f"{name.upper()}_PROXY": settings[name] for name in ("http", "https") if settings.get(name)}
    if not variables:
        return {}
    excepted = [part.strip() for part in settings.get("except", "").split(",") if part.strip()]
    return {**variables, "NO_PROXY": ",".join((*_NO_PROXY, *excepted))}
