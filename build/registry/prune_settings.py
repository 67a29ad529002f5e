"""What a prune pod is told (docs/protocol.md, "The prune pod"). Called by build.__main__."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from build.json_object import json_variable
from build.registry.credential import Credential

_KEY = re.compile(r"[0-9a-f]{8,64}")
_DIGEST = re.compile(r"[^@]+@sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class PruneSettings:
    """`repository` is the one of the project; `images` are references by digest, `dependencies` keys."""

    repository: str
    registry_insecure: bool
    registry_credential: Credential
    images: tuple[str, ...]
    dependencies: tuple[str, ...]


def read_prune_settings(environ: Mapping[str, str]) -> PruneSettings:
    """The settings in `environ`. Raises SettingsInvalid naming what is missing or wrong."""
    told = json_variable(environ, "CREWYARD_PRUNE")
    registry = told.object("registry")
    prefix = registry.text("prefix").rstrip("/")
    return PruneSettings(
        repository=f"{prefix}/{told.text('namespace')}/{told.text('project')}",
        registry_insecure=bool(registry.values.get("insecure", False)),
        registry_credential=Credential.read(environ, registry),
        images=told.texts("images", _DIGEST),
        dependencies=told.texts("dependencies", _KEY),
    )
