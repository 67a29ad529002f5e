"""The source with its plan, which both pods of a build need. Called by build.assemble and build.workspace."""

import posixpath
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from build.logs import BuildLog
from build.settings import BuildSettings
from build.source.fetch import fetch_source
from build.source.fetched import FetchedSource
from build.source.tree import CheckedSourceTree
from plan.base.images import ImageRules, with_allowed_images
from plan.errors import join_limited
from plan.keys import combined_hash, dependencies_key
from plan.lfs_pointer import pointer_notes
from plan.make import Planned, make_plan


@dataclass(frozen=True)
class PlannedSource:
    """`tree` without excluded files, its plan, and the key of its dependency image on `base_image`.

    `path` is its directory in the repository, `outside` are projects of other directories there. `seconds`
    are those of the stages `fetch` and `plan`. `subject` is that of the commit.
    """

    tree: CheckedSourceTree
    planned: Planned
    key: str
    base_image: str
    path: str = ""
    outside: Mapping[str, CheckedSourceTree] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    subject: str = ""


def fetch_and_plan(settings: BuildSettings, log: BuildLog) -> PlannedSource:
    """Fetch the source, plan it and log both. Raises PlanError or InfrastructureError."""
    started = time.monotonic()
    fetched = fetch_source(settings, log)
    seconds = {"fetch": time.monotonic() - started}
    pythons, private = list(settings.base_images), bool(settings.private_index)
    planned = make_plan(
        fetched.tree,
        settings.crew,
        pythons,
        private,
        fetched.path,
        fetched.outside,
        settings.dockerfile,
        settings.requirements,
    )
    planned = _with_images(planned, settings)
    tree = fetched.tree.without(planned.excluded)
    count = len(fetched.tree)
    excluded = f" ({count - len(tree)} excluded)" if len(tree) < count else ""
    took = time.monotonic() - started
    seconds["plan"] = took - seconds["fetch"]
    log.line(f"source: {len(tree)} files{excluded}, {tree.bytes} bytes, {tree.hash[:12]}, after {took:.2f} s")
    plan = planned.plan
    log.line(f"plan: {plan.framework}, {plan.entrypoint}, Python {plan.python}")
    if len(plan.entrypoints) > 1:
        log.line(f"a run can choose by name: {join_limited(tuple(plan.entrypoints))}")
    for note in (*planned.notes, *pointer_notes(tree, lambda path: tree.entry(path).size)):
        log.line(f"note: {note}")
    for directory in planned.declaration.projects:
        log.line(f"the project in {directory or '.'} is installed as a package: code changes rebuild it")
    own_base = planned.declaration.base
    base_image = f"the image of {own_base.path}" if own_base else settings.base_images[plan.python]
    index = settings.private_index
    outside = _outside_projects(fetched, planned.declaration.projects)
    installed = combined_hash(tree.hash, {path: project.hash for path, project in outside.items()})
    copied = tree.only(own_base.copied).hash if own_base and own_base.copied else ""
    key = dependencies_key(planned.declaration, plan.python, base_image, installed, index, copied)
    return PlannedSource(tree, planned, key, base_image, fetched.path, outside, seconds, fetched.subject)


def _with_images(planned: Planned, settings: BuildSettings) -> Planned:
    """Return the plan with the images that the crew's Dockerfile takes. Raises PlanError."""
    base = planned.declaration.base
    if base is None:
        return planned
    rules = ImageRules(settings.base_images, settings.dockerfile_images, settings.crews)
    resolved = with_allowed_images(base, rules)
    notes = (*planned.notes, *(note for note in resolved.notes if note not in planned.notes))
    return replace(planned, declaration=replace(planned.declaration, base=resolved), notes=notes)


def _outside_projects(fetched: FetchedSource, projects: Iterable[str]) -> dict[str, CheckedSourceTree]:
    """Return the trees of the projects that are not in the source, by directory."""
    trees: dict[str, CheckedSourceTree] = {}
    if fetched.outside is None:
        return trees
    for project in projects:
        directory = posixpath.dirname(project) if project in fetched.outside else project
        if directory not in trees and not f"{directory}/".startswith(f"{fetched.path}/"):
            trees[directory] = fetched.outside.tree(directory)
    return trees
