"""How build pods get out: web proxies and authorities of the installation's own. Pure.

Crews never get any of it; what a dependency executes while it is installed sees the proxies, so they should
need no password. Called by `controller.config` and the pod builders.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from egress import ca_bundle as authorities

_NEVER = ("localhost", "127.0.0.1", ".svc", ".cluster.local")
"""What is in the cluster is not asked for by a proxy."""
_NAMES = ("http", "https", "except")
IN_WORKSPACE = "ca.crt"
"""In the workspace of a dependencies pod: the list that Kaniko and pip read."""


@dataclass(frozen=True)
class WayOut:
    """`proxies` by the variables' names; `authorities` as PEM, or nothing."""

    proxies: Mapping[str, str] = field(default_factory=dict)
    authorities: str = ""

    def command(self, command: list[str]) -> list[str]:
        """A command of ours, with what makes it trust these authorities in front."""
        return ["python3", "-m", "egress.ca_bundle", *command] if self.authorities else command

    def env(self) -> list[dict[str, Any]]:
        """The variables of a container of ours."""
        found = {**self.proxies, **({authorities.VARIABLE: self.authorities} if self.authorities else {})}
        return [{"name": name, "value": value} for name, value in found.items()]

    def kaniko_env(self, workspace: str) -> list[dict[str, Any]]:
        """Kaniko's own variables: it fetches the base image."""
        trusted = {"SSL_CERT_FILE": f"{workspace}/{IN_WORKSPACE}"} if self.authorities else {}
        return [{"name": name, "value": value} for name, value in {**self.proxies, **trusted}.items()]

    def kaniko_arguments(self) -> list[str]:
        """What gives the proxies to the installations that Kaniko executes, and leaves them in no layer."""
        return [f"--build-arg={name}={value}" for name, value in self.proxies.items()]


def parse_authorities(text: str) -> str:
    """The certificates of CREWYARD_CA. Raises ValueError."""
    return authorities.check(text)


def parse_proxies(text: str) -> dict[str, str]:
    """The variables for CREWYARD_BUILD_PROXIES. Raises ValueError that names the entry."""
    given = json.loads(text)
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise ValueError(
            'a JSON object of texts is needed, such as {"https": "http://proxy.example.com:3128"}'
        )
    for name, value in given.items():
        if name not in _NAMES:
            raise ValueError(f"{name!r} is none of {', '.join(_NAMES)}")
        if name != "except" and value and urlsplit(value).scheme not in ("http", "https"):
            raise ValueError(f"{name}: {value!r} is no http address")
    found = {f"{name.upper()}_PROXY": given[name] for name in ("http", "https") if given.get(name)}
    if not found:
        return {}
    excepted = [part.strip() for part in given.get("except", "").split(",") if part.strip()]
    return {**found, "NO_PROXY": ",".join((*_NEVER, *excepted))}
