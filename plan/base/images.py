"""Images that a crew's Dockerfile may take from registries. Called by build.planned_source.

They are those beside the installation's base images, and what an operator adds; never an image of a
crew, which may be another project's.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import CONFIG_INVALID, PlanError, join_limited
from .read import BaseDockerfile

_HUB = "docker.io"
_HUB_NAMES = ("index.docker.io", "registry-1.docker.io")
_MIRRORED = re.compile(r"/library/python[:@]")
# Stricter than the builder, which sends a name such as .. as it is.
_REFERENCE = re.compile(
    r"[A-Za-z0-9.-]+(?::\d+)?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)+(?::[\w.-]{1,128})?(?:@sha256:[0-9a-f]{64})?"
)


@dataclass(frozen=True)
class ImageRules:
    """`offered` are the installation's base images by Python, `allowed` prefixes of more images.

    `crews` are the prefixes of the crews' own images, which are never allowed.
    """

    offered: Mapping[str, str]
    allowed: tuple[str, ...] = ()
    crews: tuple[str, ...] = ()

    def resolve(self, image: str) -> str | None:
        """Return the image to take for this reference, or None where it is not allowed.

        python:3.11-slim of Docker Hub is taken from where the installation has it.
        """
        full = full_reference(image)
        if not _REFERENCE.fullmatch(full) or full.startswith(tuple(map(_full_prefix, self.crews))):
            return None
        offered = {
            f"{_HUB}/library/python:{version}-slim": full_reference(each)
            for version, each in self.offered.items()
        }
        mirrored = offered.get(full)
        if mirrored and _MIRRORED.search(mirrored) and not mirrored.startswith(f"{_HUB}/"):
            return mirrored
        beside = _directory(full) in map(_directory, offered.values())
        return image if beside or full.startswith(tuple(map(_full_prefix, self.allowed))) else None

    def shown(self) -> tuple[str, ...]:
        """Return what is allowed, for a message."""
        beside = (f"{_directory(full_reference(image))}*" for image in self.offered.values())
        return tuple(dict.fromkeys([*beside, *(f"{_full_prefix(prefix)}…" for prefix in self.allowed)]))


def full_reference(image: str) -> str:
    """Return an image reference with its registry, as container runtimes read it."""
    first, slash, rest = image.partition("/")
    if not slash or not _is_registry(first):
        return f"{_HUB}/{image if slash else f'library/{image}'}"
    return f"{_HUB if first in _HUB_NAMES else first}/{rest}"


def with_allowed_images(dockerfile: BaseDockerfile, rules: ImageRules) -> BaseDockerfile:
    """Return the Dockerfile with the images to take. Raises PlanError(ConfigInvalid) for one not allowed."""
    changed, notes = [], list(dockerfile.notes)
    for each in dockerfile.instructions:
        if each.image:
            image = rules.resolve(each.image)
            if image is None:
                raise PlanError(
                    CONFIG_INVALID,
                    f"{dockerfile.path} line {each.line}: this installation does not allow the image "
                    f"{each.image[:300]}; allowed: {join_limited(rules.shown())}",
                    "Use such an image; an operator can allow more (CREWYARD_DOCKERFILE_IMAGES).",
                )
            if image != each.image:
                notes.append(f"{dockerfile.path} line {each.line}: {each.image} is taken from {image}")
            each = each.with_image(image)
        changed.append(each)
    return replace(dockerfile, instructions=tuple(changed), notes=tuple(dict.fromkeys(notes)))


def _directory(image: str) -> str:
    """Return a full reference up to its last name."""
    return image.rpartition("/")[0] + "/"


def _full_prefix(prefix: str) -> str:
    """Return a configured prefix with its registry; a registry alone is a whole directory."""
    return f"{prefix}/" if _is_registry(prefix) else full_reference(prefix)


def _is_registry(name: str) -> bool:
    return "/" not in name and ("." in name or ":" in name or name == "localhost")
