"""The source with its plan, which both pods of a build need. Called by build.assemble and build.workspace."""

import time
from dataclasses import dataclass

from build.logs import BuildLog
from build.settings import BuildSettings
from build.source.fetch import fetch_source
from build.source.tree import CheckedSourceTree
from plan.keys import dependencies_key
from plan.make import Planned, make_plan


@dataclass(frozen=True)
class PlannedSource:
    """`tree` without excluded files, its plan, and the key of its dependency image on `base_image`."""

    tree: CheckedSourceTree
    planned: Planned
    key: str
    base_image: str


def fetch_and_plan(settings: BuildSettings, log: BuildLog) -> PlannedSource:
    """Fetch the source, plan it and log both. Raises PlanError or InfrastructureError."""
    started = time.monotonic()
    fetched = fetch_source(settings, log)
    planned = make_plan(fetched, settings.crew, list(settings.base_images), bool(settings.private_index))
    tree = fetched.without(planned.excluded)
    excluded = f" ({len(fetched) - len(tree)} excluded)" if len(tree) < len(fetched) else ""
    took = time.monotonic() - started
    log.line(f"source: {len(tree)} files{excluded}, {tree.bytes} bytes, {tree.hash[:12]}, after {took:.2f} s")
    plan = planned.plan
    log.line(f"plan: {plan.framework}, {plan.entrypoint}, Python {plan.python}")
    for note in planned.notes:
        log.line(f"note: {note}")
    for directory in planned.declaration.projects:
        log.line(f"the project in {directory or '.'} is installed as a package: code changes rebuild it")
    base_image = settings.base_images[plan.python]
    index = settings.private_index
    key = dependencies_key(planned.declaration, plan.python, base_image, tree.hash, index)
    return PlannedSource(tree, planned, key, base_image)
