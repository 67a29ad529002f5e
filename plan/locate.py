"""The entrypoint of a configuration: declared, main:kickoff, or discovered. Called by plan.make."""

from collections.abc import Mapping

from .bindings import parse_module
from .config.configuration import DEFAULT_ENTRYPOINT, Configuration
from .discovery.discover import discover_entrypoint
from .discovery.import_effects import line_of_run_on_import
from .entrypoint import EntrypointLocation, find_entrypoint
from .errors import PlanError
from .file_entrypoint import is_file_entrypoint
from .source import Files


def locate_entrypoint(
    files: Files, configuration: Configuration, python: str, excluded: Mapping[str, str]
) -> tuple[str, EntrypointLocation, tuple[str, ...]]:
    """Return the entrypoint, its location, and notes for the build log. Raises PlanError."""

    def find(entrypoint: str) -> EntrypointLocation:
        return find_entrypoint(files, entrypoint, configuration.origin, python, excluded)

    declared = configuration.entrypoint
    if declared is not None:
        location = find(declared)
        entrypoint = location.path if is_file_entrypoint(declared) else declared
        return entrypoint, location, _notes(files, entrypoint, location, python)
    default_error = None
    if configuration.kind is None:
        try:
            location = find_entrypoint(
                files, DEFAULT_ENTRYPOINT, configuration.origin, python, excluded, allow_projects=False
            )
            return DEFAULT_ENTRYPOINT, location, _notes(files, DEFAULT_ENTRYPOINT, location, python)
        except PlanError as error:
            default_error = error
    found = discover_entrypoint(files, configuration, python, find, default_error)
    note = f"no entrypoint is configured; found {found}"
    location = find(found)
    return found, location, (note, *_notes(files, found, location, python))


def _notes(files: Files, entrypoint: str, location: EntrypointLocation, python: str) -> tuple[str, ...]:
    """Return a note if importing the entrypoint's module already runs a crew, flow or graph."""
    if is_file_entrypoint(entrypoint):
        return ()
    tree = parse_module(location.path, files[location.path], python)
    line = line_of_run_on_import(tree) if tree is not None else None
    if line is None:
        return ()
    return (
        f"{location.path} line {line} runs when the module is imported, before {entrypoint} is called; "
        f'move it below if __name__ == "__main__", or set entrypoint = "{location.path}" to run a script',
    )
