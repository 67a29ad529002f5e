"""Step `assemble`: build the image from the source, or report the missing dependency image.

Called by build.__main__. Never executes code of the crew.
"""

import time
from pathlib import Path
from typing import Any

from build.errors import InfrastructureError, require_image_size
from build.image.layers import ImageLayer, code_files, excluded_files, make_layer
from build.image.manifest import ImageInvalid, ImageManifest, append_layers
from build.image.runner_files import runner_files
from build.logs import BuildLog
from build.planned_source import PlannedSource, fetch_and_plan
from build.registry import shared_base
from build.registry.repository import ImageRepository
from build.settings import BuildSettings, GitSource
from build.source.tree import CheckedSourceTree
from egress.git.repository_url import display_url
from plan.keys import base_key, build_key
from plan.packages.dockerfile import needs_dockerfile

# Directories of the dependency image; their owners and modes must not change.
_BASE_DIRECTORIES = ("app", "app/artifacts", "opt", "opt/crewyard")

_PREPARED_LAYERS: dict[Path, ImageLayer] = {}
"""Runner layers by directory, for one build each: the content is read once."""


def assemble(settings: BuildSettings, log: BuildLog, runner: Path) -> dict[str, Any]:
    """Assemble the image and return the termination message. Raises PlanError or InfrastructureError.

    The modules in the directory `runner` go to /opt/crewyard/runner.
    """
    started = time.monotonic()
    repository = ImageRepository(
        settings.repository, settings.registry_insecure, settings.registry_credential
    )
    repository.prepare()
    sourced = fetch_and_plan(settings, log)
    planned, key = sourced.planned, sourced.key
    runner_layer = _PREPARED_LAYERS.pop(runner, None) or _make_runner_layer(runner)
    build = build_key(sourced.tree.hash, planned.plan, key, runner_layer.diff_id)
    # The build key identifies the image; its label names the first commit with that content.
    existing = settings.proven.images.get(build)
    if existing is not None and repository.digest(existing.image) is not None:
        result = _result(settings, sourced, build, existing.image, existing.dependencies)
        log.line(f"image {result['image']} already has this content: nothing to push")
        return {**result, "seconds": _seconds(sourced, started)}
    base = _dependency_image(settings, repository, key, log)
    if base is None:
        origin = planned.declaration.origin or "none declared"
        log.line(f"dependencies ({origin}): {key[:12]} is not built yet")
        return {
            "outcome": "dependencies",
            "plan": planned.plan.as_status(),
            "dependencies_key": key,
            "dependencies_image": f"{settings.repository}:deps-{key}",
            "base_image": sourced.base_image,
            **_base(settings, repository, sourced, log),
            "seconds": _seconds(sourced, None),
        }
    log.line(f"dependencies: {key[:12]} is built")
    result = _build_image(settings, log, repository, base, sourced, build, runner_layer)
    result["seconds"] = _seconds(sourced, started)
    log.line(f"image {result['image']} after {time.monotonic() - started:.2f} s")
    parts = ", ".join(f"{name} {value:.2f} s" for name, value in result["seconds"].items())
    log.line(f"stages: {parts}")
    return result


def prepare_runner_layer(runner: Path) -> None:
    """Make the layer of the modules in the directory `runner` before a build needs it."""
    _PREPARED_LAYERS[runner] = _make_runner_layer(runner)


def _make_runner_layer(runner: Path) -> ImageLayer:
    return make_layer(runner_files(runner), _BASE_DIRECTORIES)


def _dependency_image(
    settings: BuildSettings, repository: ImageRepository, key: str, log: BuildLog
) -> ImageManifest | None:
    """Return the dependency image that a build made for the key, or None: a tag proves nothing."""
    digest = settings.proven.dependencies.get(key)
    base = repository.image(digest) if digest else None
    if base is None and shared_base.is_shared(settings, key):
        base = shared_base.take(settings, repository, key, log)
    return base


def _base(
    settings: BuildSettings, repository: ImageRepository, sourced: PlannedSource, log: BuildLog
) -> dict[str, Any]:
    """Return the image without dependencies in which a container can install the missing ones.

    Its digest is empty where the repository does not have it. Nothing where the installation needs Kaniko.
    """
    if not settings.install_in_base or needs_dockerfile(sourced.planned.declaration):
        return {}
    key = base_key(sourced.planned.plan.python, sourced.base_image)
    if key == sourced.key:
        return {}
    image = _dependency_image(settings, repository, key, log)
    return {"base": {"key": key, "digest": image.digest if image else ""}}


def _build_image(
    settings: BuildSettings,
    log: BuildLog,
    repository: ImageRepository,
    base: ImageManifest,
    sourced: PlannedSource,
    build: str,
    runner_layer: ImageLayer,
) -> dict[str, Any]:
    tree = sourced.tree
    for path in excluded_files(tree)[:10]:
        log.line(f"{path} is excluded: the directory artifacts is empty when a run starts")
    executable = [path for path in tree if tree.entry(path).executable]
    code_layer = make_layer(code_files(tree, executable), _BASE_DIRECTORIES)
    labels = _labels(settings, tree, build)
    try:
        image = append_layers(
            base, [(runner_layer, "crewyard: runner"), (code_layer, "crewyard: source")], labels
        )
    except ImageInvalid as error:
        raise InfrastructureError(f"{settings.repository}:deps-{sourced.key}: {error}") from None
    require_image_size(image.size, settings.image_bytes)
    for name, layer in (("runner", runner_layer), ("source", code_layer)):
        _push(repository, layer, name, log)
    return _result(settings, sourced, build, repository.push_image(image, f"build-{build}"), base.digest)


def _seconds(sourced: PlannedSource, started: float | None) -> dict[str, float]:
    """Return the seconds of the stages in this pod; `assemble` is what fetch and plan have left of it."""
    seconds = dict(sourced.seconds)
    if started is not None:
        seconds["assemble"] = time.monotonic() - started - sum(seconds.values())
    return {name: round(value, 3) for name, value in seconds.items()}


def _result(
    settings: BuildSettings, sourced: PlannedSource, build: str, digest: str, dependencies: str
) -> dict[str, Any]:
    return {
        "outcome": "built",
        "image": f"{settings.repository}@{digest}",
        "plan": sourced.planned.plan.as_status(),
        "tree": sourced.tree.hash,
        "build_key": build,
        "dependencies_key": sourced.key,
        "dependencies_digest": dependencies,
        **({"message": sourced.subject} if sourced.subject else {}),
    }


def _push(repository: ImageRepository, layer: ImageLayer, name: str, log: BuildLog) -> None:
    uploaded = repository.push_blob(layer.content, layer.size, layer.digest)
    layer.content.close()
    log.line(f"{name} layer: {layer.size} bytes{'' if uploaded else ', already in the registry'}")


def _labels(settings: BuildSettings, tree: CheckedSourceTree, build: str) -> dict[str, str]:
    labels = {
        "crewyard.dev/project": settings.project,
        "crewyard.dev/tree": tree.hash,
        "crewyard.dev/build-key": build,
    }
    if isinstance(settings.source, GitSource):
        labels["org.opencontainers.image.revision"] = settings.source.commit
        labels["org.opencontainers.image.source"] = display_url(settings.source.url)
    return labels
