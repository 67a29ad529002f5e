"""The crews and graphs of a configuration that a run can choose by name. Called by plan.make."""

import json
import re
import shlex
from collections.abc import Mapping

from .config.configuration import Configuration
from .entrypoint import EntrypointLocation, find_entrypoint
from .errors import PlanError
from .file_entrypoint import is_file_entrypoint
from .source import Files

# A name never contains a colon or a dot: those are `module:object` and files, which need another permission.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,62}")
# The whole plan must fit into a build pod's termination message.
_MAX_BYTES = 1024


def check_named_entrypoints(
    files: Files,
    configuration: Configuration,
    default: tuple[str, EntrypointLocation],
    python: str,
    excluded: Mapping[str, str],
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the entrypoints by name, `default` among them, and notes on those left out."""
    found: dict[str, str] = {}
    notes: list[str] = []
    if configuration.name is not None and _NAME.fullmatch(configuration.name):
        found[configuration.name] = default[0]
    for named in configuration.named:
        try:
            location = find_entrypoint(files, named.entrypoint, named.origin, python, excluded)
        except PlanError as error:
            notes.append(f"{named.name} is left out: {error.message}")
            continue
        entrypoint = location.path if is_file_entrypoint(named.entrypoint) else named.entrypoint
        if location.project not in (None, default[1].project):
            problem = f"the project in {location.project or '.'} is not installed for {default[0]}"
        elif not _NAME.fullmatch(named.name):
            problem = "a run cannot name it; use letters, digits, _ and -"
        elif len(json.dumps({**found, named.name: entrypoint})) > _MAX_BYTES:
            problem = f"all names and entrypoints together have more than {_MAX_BYTES} bytes"
        else:
            found[named.name] = entrypoint
            continue
        # Not by its name, which may be none that a Project can have.
        crew = shlex.quote(entrypoint)
        ways = f"to run it, set spec.source.git.crew to {crew} or deploy with --crew {crew}"
        notes.append(f"{named.name} is left out: {problem}; {ways}")
    return found, tuple(notes)
