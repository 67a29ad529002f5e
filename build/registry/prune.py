"""Step `prune`: delete images that no Deployment uses from the registry. Called by build.__main__.

Deletes manifests by digest, which also deletes all their tags. The registry's garbage collection then frees
the layers.
"""

from typing import Any

from build.errors import BuildRefused, InfrastructureError
from build.logs import BuildLog
from build.registry.attachments import attestation_tag, referrers_tag
from build.registry.prune_settings import PruneSettings
from build.registry.repository import ImageRepository

_MAX_TAGS = 10_000


def prune(settings: PruneSettings, log: BuildLog) -> dict[str, Any]:
    """Delete the images and return the termination message. Raises InfrastructureError; a retry continues."""
    repository = ImageRepository(
        settings.repository, settings.registry_insecure, settings.registry_credential
    )
    try:
        digests = _digests(settings, repository, log)
        removed = 0
        for label, digest in digests.items():
            _delete_attestations(repository, digest)
            deleted = repository.delete(digest)
            if deleted is None:
                log.line(f"the registry of {repository.name} does not support deletion: nothing is removed")
                break
            removed += deleted
            log.line(f"{label}: {'removed' if deleted else 'already gone'}")
    except BuildRefused as error:
        raise InfrastructureError(error.message) from None
    return {"outcome": "pruned", "removed": removed}


def _delete_attestations(repository: ImageRepository, image_digest: str) -> None:
    """Delete what is attached to an image, before the image: without it, nothing would find them."""
    for tag in (attestation_tag(image_digest), referrers_tag(image_digest)):
        if (attached := repository.digest(tag)) is not None:
            repository.delete(attached)


def _digests(settings: PruneSettings, repository: ImageRepository, log: BuildLog) -> dict[str, str]:
    """Return the digests to delete by their label for the log."""
    digests: dict[str, str] = {}
    for image in settings.images:
        name, _, digest = image.partition("@")
        if name != repository.name:
            raise InfrastructureError(f"{image} is not in {repository.name}")
        digests[f"image {digest}"] = digest
    if not settings.dependencies:
        return digests
    unused_tags = {f"deps-{key}" for key in settings.dependencies}
    tags = [tag for tag in repository.tags(_MAX_TAGS) if tag.startswith("deps-")]
    kept_digests = {repository.digest(tag) for tag in tags if tag not in unused_tags}
    for tag in sorted(unused_tags):
        tag_digest = repository.digest(tag)
        if tag_digest is None:
            log.line(f"{tag}: already gone")
        elif tag_digest in kept_digests:
            log.line(f"{tag}: kept, because a tag in use has the same image")
        else:
            digests[tag] = tag_digest
    return digests
