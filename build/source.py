"""Step `source` of the dependencies pod: writes what Kaniko needs, no more. Called by build.__main__."""

from pathlib import Path

from build.errors import Infrastructure
from build.fetch import fetch_source
from build.logs import Log
from build.settings import Settings
from plan.dockerfile import dockerfile
from plan.keys import dependencies_key
from plan.make import make_plan

CONTEXT = Path("/workspace/context")


def write_context(settings: Settings, log: Log, context: Path = CONTEXT) -> None:
    """Fetches the source again and writes Dockerfile and dependency declaration to `context`.

    Raises PlanError, or Infrastructure where they are not the ones `assemble` asked for.
    """
    tree = fetch_source(settings, log)
    planned = make_plan(tree, settings.crew, list(settings.base_images))
    base_image = settings.base_images[planned.plan.python]
    key = dependencies_key(planned.declaration, planned.plan.python, base_image)
    if settings.dependencies_key not in (None, key):
        raise Infrastructure(f"the source needs dependencies {key}, not {settings.dependencies_key}")
    context.mkdir(mode=0o755, parents=True, exist_ok=True)
    files = {
        **planned.declaration.files(),
        "Dockerfile": dockerfile(base_image, planned.declaration).encode(),
    }
    for name, data in files.items():
        path = context / name
        path.write_bytes(data)
        path.chmod(0o644)
    origin = planned.declaration.origin or "nothing declared"
    log.line(f"dependencies ({origin}): {len(planned.declaration.lines)} lines, on {base_image}")
