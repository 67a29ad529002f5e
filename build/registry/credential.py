"""The credential of a registry, and what to say of the Secret that it came from. Called by build.registry.repository."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from build.errors import REGISTRY_PUSH, Refused
from build.json_object import JsonObject

_TYPE = "kubernetes.io/dockerconfigjson"


@dataclass(frozen=True)
class Credential:
    """`auth` is the text of a `.dockerconfigjson`, `secret` the Secret's name; empty where there is none."""

    auth: str = field(default="", repr=False)
    secret: str = ""

    @classmethod
    def read(cls, environ: Mapping[str, str], registry: JsonObject) -> "Credential":
        """What a pod was given, with the `registry` of its request."""
        return cls(environ.get("REGISTRY_AUTH", ""), str(registry.values.get("secret") or ""))

    @property
    def hint(self) -> str:
        """What to do about an answer of the registry that stays."""
        if not self.secret:
            return "Check the registry's address and quota, and name its Secret if it wants a password."
        return f"Check the registry's address and quota; the Secret {self.secret} must open this repository."

    def pair(self, host: str) -> tuple[str, str]:
        """User and password for `host`; empty where no Secret was named. Raises Refused, naming it."""
        if not self.auth.strip():
            if self.secret:
                raise Refused(
                    REGISTRY_PUSH,
                    f"the Secret {self.secret} is not there, or has no entry .dockerconfigjson",
                    f"Create it, of type {_TYPE}, with the credential that pushes to {host}.",
                )
            return "", ""
        user, password = self._entry(host)
        if not user and self.secret:
            raise Refused(
                REGISTRY_PUSH,
                f"the Secret {self.secret} has no credential for {host}",
                f"Make it again with `--docker-server={host}`.",
            )
        return user, password

    def _entry(self, host: str) -> tuple[str, str]:
        try:
            known: Mapping[str, Any] = json.loads(self.auth).get("auths", {})
            for key, entry in known.items():
                if key.removeprefix("https://").removeprefix("http://").partition("/")[0] != host:
                    continue
                if entry.get("auth"):
                    user, _, password = base64.b64decode(entry["auth"]).decode().partition(":")
                    return user, password
                return str(entry.get("username", "")), str(entry.get("password", ""))
        except (ValueError, AttributeError, TypeError, binascii.Error, RecursionError):
            raise Refused(
                REGISTRY_PUSH,
                f"the Secret {self.secret or 'of the registry'} holds no valid .dockerconfigjson",
                f"Make the Secret again, of type {_TYPE}.",
            ) from None
        return "", ""
