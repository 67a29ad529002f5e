"""The image of a crew without dependencies: a base image with the crews' user. Made once for an installation.

The first build of such a crew pushes it to a repository of its own, from where every other project takes it.
No code of a crew is executed for it. Called by build.assemble and build.registry.push.
"""

from build.errors import BuildRefused, InfrastructureError
from build.image.manifest import ImageInvalid, ImageManifest, layer_digests_in
from build.logs import BuildLog
from build.registry.repository import ImageRepository
from build.settings import BuildSettings
from plan.keys import base_keys

# No Project can have this name.
NAME = "crewyard.base"


def is_shared(settings: BuildSettings, key: str) -> bool:
    """Return whether the dependency image `key` is a base image with the crews' user, and nothing else."""
    return key in base_keys(settings.base_images)


def take(
    settings: BuildSettings, repository: ImageRepository, key: str, log: BuildLog
) -> ImageManifest | None:
    """Mount the shared image `key` into the project's repository and return it; None where that cannot be."""
    digest = settings.proven.shared.get(key)
    return _copy(_shared_repository(settings), repository, key, digest, log) if digest else None


def offer(settings: BuildSettings, repository: ImageRepository, key: str, digest: str, log: BuildLog) -> None:
    """Mount the project's dependency image `key` into the shared repository, if the credential may."""
    _copy(repository, _shared_repository(settings), key, digest, log)


def _shared_repository(settings: BuildSettings) -> ImageRepository:
    name = f"{settings.registry_prefix.rstrip('/')}/{settings.namespace}/{NAME}"
    return ImageRepository(name, settings.registry_insecure, settings.registry_credential)


def _copy(
    source: ImageRepository, target: ImageRepository, key: str, digest: str, log: BuildLog
) -> ImageManifest | None:
    tag = f"deps-{key}"
    try:
        image = source.image(digest)
        if image is None:
            return None
        if not all(target.mount_blob(digest, source.path) for digest in layer_digests_in(image.manifest)):
            log.line(f"{source.name}:{tag} is not used: the registry mounts no layers of other repositories")
            return None
        target.push_image(image, tag)
    except (BuildRefused, InfrastructureError, ImageInvalid) as error:
        log.line(f"{source.name}:{tag} is not copied to {target.name}: {error}")
        return None
    log.line(f"{target.name}:{tag} is {source.name}:{tag}")
    return image
