"""Settings of a prune pod (docs/protocol.md, "The prune pod"). Called by build.__main__."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from build.json_object import json_variable
from build.registry.credential import RegistryCredential

_KEY = re.compile(r"[0-9a-f]{8,64}")
_DIGEST = re.compile(r"[^@]+@sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class PruneSettings:
    """`repository` is the project's; `images` are references by digest, `dependencies` are keys."""

    repository: str
    registry_insecure: bool
    registry_credential: RegistryCredential
    images: tuple[str, ...]
    dependencies: tuple[str, ...]


def read_prune_settings(environ: Mapping[str, str]) -> PruneSettings:
    """Parse the settings from `environ`. Raises BuildSettingsInvalid naming the variable and key."""
    request = json_variable(environ, "CREWYARD_PRUNE")
    registry = request.object("registry")
    prefix = registry.text("prefix").rstrip("/")
    return PruneSettings(
        repository=f"{prefix}/{request.text('namespace')}/{request.text('project')}",
        registry_insecure=bool(registry.values.get("insecure", False)),
        registry_credential=RegistryCredential.read(environ, registry),
        images=request.texts("images", _DIGEST),
        dependencies=request.texts("dependencies", _KEY),
    )
