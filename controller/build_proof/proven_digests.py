"""Images that a build may take from the registry, each by digest: those of Deployments with a proof. Pure.

A tag says nothing about who pushed its image. Called by `controller.deployment.build_admission`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controller.build_proof.proof import proven_pod
from controller.config import ControllerConfig
from crds.objects import Deployment, creation_order
from plan.keys import base_keys

MAX_IMAGES = 20
"""Of each kind, the newest: they are in the environment of every build pod."""
_FIELDS = ("dependenciesKey", "dependenciesDigest", "baseKey", "baseDigest", "buildKey")


@dataclass(frozen=True)
class ProvenDigests:
    """Digests by key. `images` are crews' images with the digest of their dependency image.

    `shared` are dependency images without dependencies, in the repository that all projects share. `bases`
    are the status fields of the one in which a dependency image was installed, by the digest of the latter.
    """

    images: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    dependencies: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)
    bases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def as_request(self, built: Mapping[str, str]) -> dict[str, Any]:
        """Return the part of CREWYARD_BUILD; `built` are dependency images that this build has pushed."""
        dependencies = {**self.dependencies, **built}
        return {"images": dict(self.images), "dependencies": dependencies, "shared": dict(self.shared)}


def proven_images(project: str, deployments: Iterable[Deployment], config: ControllerConfig) -> ProvenDigests:
    """Return the newest images that a build of the project may take."""
    shared_keys = base_keys(config.base_images)
    images: dict[str, dict[str, str]] = {}
    dependencies: dict[str, str] = {}
    shared: dict[str, str] = {}
    bases: dict[str, dict[str, str]] = {}
    candidates = [
        one
        for one in deployments
        if one.project == project
        or any(one.status.get(name) in shared_keys for name in ("dependenciesKey", "baseKey"))
    ]
    for one in sorted(candidates, key=creation_order, reverse=True):
        key, digest, base, base_digest, build = (str(one.status.get(name) or "") for name in _FIELDS)
        own = one.project == project
        wanted = [
            own and build not in images and len(images) < MAX_IMAGES,
            own and key not in dependencies and len(dependencies) < MAX_IMAGES,
            key in shared_keys and key not in shared,
            base in shared_keys and (base not in shared or (own and base not in dependencies)),
        ]
        if not any(wanted) or proven_pod(config.token_keys, config.namespace, one) is None:
            continue
        if wanted[0]:
            images[build] = {"image": str(one.image).partition("@")[2], "dependencies": digest}
        if wanted[1]:
            dependencies[key] = digest
            if base:
                bases[digest] = {"baseKey": base, "baseDigest": base_digest}
        if wanted[2]:
            shared[key] = digest
        if wanted[3]:
            shared.setdefault(base, base_digest)
            if own:
                # In the project's repository, also where projects share none.
                dependencies.setdefault(base, base_digest)
    return ProvenDigests(images, dependencies, shared, bases)
