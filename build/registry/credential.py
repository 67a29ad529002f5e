"""Registry credentials from a Secret, with hints for its errors. Called by build.registry.repository."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from build.errors import REGISTRY_PUSH, BuildRefused
from build.json_object import JsonObject

_TYPE = "kubernetes.io/dockerconfigjson"


@dataclass(frozen=True)
class RegistryCredential:
    """`auth` is the content of `.dockerconfigjson`, `secret` the Secret's name; empty where there is none."""

    auth: str = field(default="", repr=False)
    secret: str = ""

    @classmethod
    def read(cls, environ: Mapping[str, str], registry: JsonObject) -> "RegistryCredential":
        """Read the credential from the pod's environment and the `registry` of its settings."""
        return cls(environ.get("REGISTRY_AUTH", ""), str(registry.values.get("secret") or ""))

    @property
    def hint(self) -> str:
        """Next step for a permanent error of the registry."""
        if not self.secret:
            return "Check the registry's address and quota; if it requires a password, configure its Secret."
        return f"Check the registry's address and quota; Secret {self.secret} must allow this repository."

    def pair(self, host: str) -> tuple[str, str]:
        """Return user and password for `host`, empty without a Secret. Raises BuildRefused with its name."""
        if not self.auth.strip():
            if self.secret:
                raise BuildRefused(
                    REGISTRY_PUSH,
                    f"the Secret {self.secret} does not exist or has no key .dockerconfigjson",
                    f"Create it with type {_TYPE} and a credential that may push to {host}.",
                )
            return "", ""
        user, password = self._entry(host)
        if not user and self.secret:
            raise BuildRefused(
                REGISTRY_PUSH,
                f"the Secret {self.secret} has no credential for {host}",
                f"Create it again with `--docker-server={host}`.",
            )
        return user, password

    def _entry(self, host: str) -> tuple[str, str]:
        try:
            auths: Mapping[str, Any] = json.loads(self.auth).get("auths", {})
            for key, entry in auths.items():
                if key.removeprefix("https://").removeprefix("http://").partition("/")[0] != host:
                    continue
                if entry.get("auth"):
                    user, _, password = base64.b64decode(entry["auth"]).decode().partition(":")
                    return user, password
                return str(entry.get("username", "")), str(entry.get("password", ""))
        except (ValueError, AttributeError, TypeError, binascii.Error, RecursionError):
            raise BuildRefused(
                REGISTRY_PUSH,
                f"the Secret {self.secret or 'of the registry'} has an invalid .dockerconfigjson",
                f"Create the Secret again with type {_TYPE}.",
            ) from None
        return "", ""
