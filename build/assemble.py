"""Step `assemble`: from the source to an image by digest, or to the dependency image that is missing first.

Called by build.__main__. Executes nothing of the crew's.
"""

import time
from pathlib import Path
from typing import Any

from build.errors import Infrastructure
from build.image.layers import Layer, code_files, left_out, make_layer
from build.image.manifest import Image, ImageInvalid, appended
from build.image.runner_files import runner_files
from build.logs import Log
from build.planned_source import Sourced, planned_source
from build.registry.repository import Repository
from build.settings import GitSource, Settings
from build.source.tree import SourceTree
from egress.git.repository_url import shown
from plan.keys import build_key

# What the dependency image has already, with owners and modes that must stay.
_THERE = ("app", "app/artifacts", "opt", "opt/crewyard")


def assemble(settings: Settings, log: Log, runner: Path) -> dict[str, Any]:
    """The words for the termination message. Raises PlanError or Infrastructure.

    `runner` is the directory whose modules go to /opt/crewyard/runner.
    """
    started = time.monotonic()
    repository = Repository(settings.repository, settings.registry_insecure, settings.registry_credential)
    repository.prepare()
    sourced = planned_source(settings, log)
    planned, key = sourced.planned, sourced.key
    runner_layer = make_layer(runner_files(runner), _THERE)
    build = build_key(sourced.tree.hash, planned.plan, key, runner_layer.diff_id)
    # An image is found by what it is built from; its label names the first commit with that content.
    known = repository.digest(f"build-{build}")
    if known is not None:
        words = _words(settings, sourced, build, known)
        log.line(f"image {words['image']} has this content already: nothing to push")
        return words
    base = repository.image(f"deps-{key}")
    if base is None:
        origin = planned.declaration.origin or "nothing declared"
        log.line(f"dependencies ({origin}): {key[:12]} is not built yet")
        return {
            "outcome": "dependencies",
            "plan": planned.plan.as_status(),
            "dependencies_key": key,
            "dependencies_image": f"{settings.repository}:deps-{key}",
            "base_image": sourced.base_image,
        }
    log.line(f"dependencies: {key[:12]} is there")
    words = _built(settings, log, repository, base, sourced, build, runner_layer)
    log.line(f"image {words['image']} after {time.monotonic() - started:.2f} s")
    return words


def _built(
    settings: Settings,
    log: Log,
    repository: Repository,
    base: Image,
    sourced: Sourced,
    build: str,
    runner_layer: Layer,
) -> dict[str, Any]:
    tree = sourced.tree
    for path in left_out(tree)[:10]:
        log.line(f"{path} is left out: the directory artifacts is empty when a run starts")
    executable = [path for path in tree if tree.entry(path).executable]
    code_layer = make_layer(code_files(tree, executable), _THERE)
    labels = _labels(settings, tree, build)
    try:
        image = appended(base, [(runner_layer, "crewyard: runner"), (code_layer, "crewyard: source")], labels)
    except ImageInvalid as error:
        raise Infrastructure(f"{settings.repository}:deps-{sourced.key}: {error}") from None
    for name, layer in (("runner", runner_layer), ("source", code_layer)):
        _push(repository, layer, name, log)
    return _words(settings, sourced, build, repository.push_image(image, f"build-{build}"))


def _words(settings: Settings, sourced: Sourced, build: str, digest: str) -> dict[str, Any]:
    return {
        "outcome": "built",
        "image": f"{settings.repository}@{digest}",
        "plan": sourced.planned.plan.as_status(),
        "tree": sourced.tree.hash,
        "build_key": build,
        "dependencies_key": sourced.key,
    }


def _push(repository: Repository, layer: Layer, name: str, log: Log) -> None:
    sent = repository.push_blob(layer.content, layer.size, layer.digest)
    layer.content.close()
    log.line(f"{name} layer: {layer.size} bytes{'' if sent else ', already there'}")


def _labels(settings: Settings, tree: SourceTree, build: str) -> dict[str, str]:
    labels = {
        "crewyard.dev/project": settings.project,
        "crewyard.dev/tree": tree.hash,
        "crewyard.dev/build-key": build,
    }
    if isinstance(settings.source, GitSource):
        labels["org.opencontainers.image.revision"] = settings.source.commit
        labels["org.opencontainers.image.source"] = shown(settings.source.url)
    return labels
