"""Step `prune`: removes images that no Deployment names any more from the registry. Called by build.__main__.

Manifests are removed by digest, and with a digest go all its tags. The registry's
own garbage collection then frees the layers.
"""

from typing import Any

from build.errors import Infrastructure, Refused
from build.logs import Log
from build.registry.prune_settings import PruneSettings
from build.registry.repository import Repository

_TAGS = 10_000


def prune(settings: PruneSettings, log: Log) -> dict[str, Any]:
    """The words for the termination message. Raises Infrastructure; another try goes on from there."""
    repository = Repository(settings.repository, settings.registry_insecure, settings.registry_credential)
    try:
        digests = _digests(settings, repository, log)
        removed = 0
        for what, digest in digests.items():
            there = repository.delete(digest)
            if there is None:
                log.line(f"the registry of {repository.name} does not delete: nothing is removed")
                break
            removed += there
            log.line(f"{what}: {'removed' if there else 'gone already'}")
    except Refused as error:
        raise Infrastructure(error.message) from None
    return {"outcome": "pruned", "removed": removed}


def _digests(settings: PruneSettings, repository: Repository, log: Log) -> dict[str, str]:
    """What is to go, for people, and its digest."""
    found: dict[str, str] = {}
    for image in settings.images:
        name, _, digest = image.partition("@")
        if name != repository.name:
            raise Infrastructure(f"{image} is not in {repository.name}")
        found[f"image {digest}"] = digest
    if not settings.dependencies:
        return found
    going = {f"deps-{key}" for key in settings.dependencies}
    tags = [tag for tag in repository.tags(_TAGS) if tag.startswith("deps-")]
    kept = {repository.digest(tag) for tag in tags if tag not in going}
    for tag in sorted(going):
        tagged = repository.digest(tag)
        if tagged is None:
            log.line(f"{tag}: gone already")
        elif tagged in kept:
            log.line(f"{tag}: stays, since a tag in use is the same image")
        else:
            found[tag] = tagged
    return found
