"""Complete plan of a source tree. Called by the build pods and by `crewyard lint`."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .base.read import BaseDockerfile, read_base_dockerfile
from .config.configuration import Configuration, read_configuration
from .config.framework import check_language, framework_of
from .discovery.foreign_imports import foreign_imports
from .entrypoint import EntrypointLocation
from .errors import CONFIG_INVALID, PlanError, join_limited
from .exclude import excluded_paths
from .file_entrypoint import SCRIPT_SUFFIX
from .inputs.find import find_input_schema
from .locate import locate_entrypoint
from .named_entrypoints import check_named_entrypoints
from .packages.declaring import declares, declaring_directory
from .packages.dependencies import DependencyDeclaration, read_dependencies
from .packages.inline_metadata import read_inline_metadata
from .python import choose_python
from .source import Files, RepositoryFiles, without_paths

# Of the 4096 bytes of a build pod's termination message, which also has image, keys and seconds.
_MAX_PLAN_BYTES = 3300
_DOCKERFILE = "Dockerfile"
_DOCKERFILE_STEP = (
    'to build on its image, set spec.build.dockerfile of the Project, or [build] dockerfile = "Dockerfile"'
)
SUPPORTED_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""Versions that the runner supports, which an image of a crew's own Dockerfile may have."""


@dataclass(frozen=True)
class Plan:
    """How to run a crew. `timeout` is a duration such as 1h30m, or None.

    `entrypoints` are the crews or graphs of the configuration by name; `entrypoint` is the default. `smoke`
    has input and timeout of the smoke run, if there is one. `inputs` is the JSON Schema of the input;
    `inputs_declared`: by the configuration, so an input must fit it, else found in the source.
    `dockerfile` is the path of the crew's own Dockerfile, if it has one.
    """

    framework: str
    entrypoint: str
    python: str
    timeout: str | None = None
    env_required: tuple[str, ...] = ()
    entrypoints: Mapping[str, str] = field(default_factory=dict)
    artifacts: tuple[str, ...] = ()
    smoke: Mapping[str, Any] | None = None
    inputs: Mapping[str, Any] | None = None
    inputs_declared: bool = False
    dockerfile: str = ""

    def as_status(self) -> dict[str, Any]:
        """Return the value of `Deployment.status.plan`; what is not set is omitted."""
        status: dict[str, Any] = {
            "framework": self.framework,
            "entrypoint": self.entrypoint,
            "python": self.python,
            "envRequired": list(self.env_required),
        }
        if self.timeout is not None:
            status["timeout"] = self.timeout
        if self.entrypoints:
            status["entrypoints"] = dict(self.entrypoints)
        if self.artifacts:
            status["artifacts"] = list(self.artifacts)
        if self.smoke is not None:
            status["smoke"] = dict(self.smoke)
        if self.inputs is not None:
            status["inputs"] = {"schema": dict(self.inputs), "declared": self.inputs_declared}
        if self.dockerfile:
            status["dockerfile"] = self.dockerfile
        return status


@dataclass(frozen=True)
class Planned:
    """A plan with the dependencies to install.

    `excluded` are the paths that the image does not contain; `notes` are lines for the build log.
    """

    plan: Plan
    declaration: DependencyDeclaration
    excluded: Collection[str] = ()
    notes: tuple[str, ...] = ()


def make_plan(
    files: Files,
    crew: str | None,
    python_versions: Sequence[str],
    private_index: bool = False,
    base: str = "",
    outside: Files | None = None,
    dockerfile: str = "",
    requirements: Sequence[str] = (),
) -> Planned:
    """Return the plan of `crew` (None: the tree's only one) for an installation with these Python versions.

    The configuration file is read even where it is excluded. `private_index`: packages are installed from
    wheels that were downloaded before. `base` is the directory of `files` in their repository, `outside` the
    repository's other files. `dockerfile` is the project's Dockerfile, which comes before the configured one;
    `requirements` are packages that the project adds. Raises PlanError.
    """
    check_language(files)
    configuration = read_configuration(files, crew)
    excluded = excluded_paths(files, configuration.exclude)
    source = files
    if excluded:
        files = without_paths(files, excluded)
    own_base = _own_base(source, files, configuration, dockerfile)
    if own_base:
        hinted = (own_base.python,) if own_base.python in SUPPORTED_PYTHONS else ()
        python_versions = tuple(dict.fromkeys((*hinted, *python_versions, *SUPPORTED_PYTHONS)))
    choice = choose_python(files, configuration, python_versions)
    entrypoint, location, notes = locate_entrypoint(files, configuration, choice.version, excluded)
    inline = read_inline_metadata(files, location.path) if entrypoint.endswith(SCRIPT_SUFFIX) else None
    directory = _declaring_directory(files, configuration, location)
    own = dict.fromkeys((directory, location.project or "", *configuration.directories))
    if inline or any(own):
        choice = choose_python(files, configuration, python_versions, inline, tuple(filter(None, own)))
    python = choice.version
    entrypoints, named_notes = check_named_entrypoints(
        files, configuration, (entrypoint, location), python, excluded
    )
    declaration = read_dependencies(
        RepositoryFiles(files, base, outside),
        configuration,
        location.project,
        private_index,
        python,
        base,
        inline,
        directory,
        requirements,
    )
    declaration = replace(declaration, base=own_base)
    plan = Plan(
        framework=framework_of(configuration.framework, declaration.packages),
        entrypoint=entrypoint,
        python=python,
        timeout=configuration.timeout,
        env_required=configuration.env_required,
        entrypoints=entrypoints,
        artifacts=configuration.artifacts,
        smoke=configuration.smoke,
        inputs=configuration.inputs,
        inputs_declared=configuration.inputs is not None,
        dockerfile=own_base.path if own_base else "",
    )
    _check_size(plan)
    if plan.inputs is None:
        found = replace(plan, inputs=find_input_schema(files, entrypoint, location.path, python))
        plan = found if _size(found) <= _MAX_PLAN_BYTES else plan
    notes = (*configuration.notes, *choice.notes, *notes, *named_notes, *declaration.notes)
    if not declaration.origin and not declaration.added and not own_base:
        notes = (*notes, *_undeclared(files, location.path, python))
    if own_base:
        notes = (*notes, *own_base.notes)
    elif _DOCKERFILE in files:
        notes = (*notes, f"{_DOCKERFILE} is not used; {_DOCKERFILE_STEP}")
    return Planned(plan, declaration, excluded, notes)


def _undeclared(files: Files, path: str, python: str) -> tuple[str, ...]:
    """Return a note if a source that declares no dependencies imports packages."""
    imported = foreign_imports(files, path, python) if path.endswith(SCRIPT_SUFFIX) else []
    if not imported:
        return ()
    return (
        f"no dependencies are declared, but the source imports {join_limited(imported)}; add a "
        "requirements.txt, or name the packages in the project: crewyard projects set PROJECT "
        "--requirement NAME",
    )


def _declaring_directory(files: Files, configuration: Configuration, location: EntrypointLocation) -> str:
    """Return the directory whose dependencies the entrypoint needs if the root declares none; else empty."""
    if location.project is not None or configuration.directories or declares(files, ""):
        return ""
    return declaring_directory(files, location.path)


def _own_base(
    source: Files, files: Files, configuration: Configuration, project: str
) -> BaseDockerfile | None:
    """Return the crew's own Dockerfile, that of the Project or of the configuration. Raises PlanError."""
    if project:
        return read_base_dockerfile(source, files, project, "spec.build.dockerfile of the Project")
    if configuration.dockerfile:
        origin = configuration.dockerfile_origin
        return read_base_dockerfile(source, files, configuration.dockerfile, origin)
    return None


def _check_size(plan: Plan) -> None:
    """Raise PlanError for a plan that is too large for a termination message."""
    if (size := _size(plan)) > _MAX_PLAN_BYTES:
        raise PlanError(
            CONFIG_INVALID,
            f"smoke, inputs, env_required, entrypoints and artifacts together have {size} bytes as JSON",
            f"Use at most {_MAX_PLAN_BYTES}: a shorter input of smoke, or fewer names.",
        )


def _size(plan: Plan) -> int:
    return len(json.dumps(plan.as_status(), separators=(",", ":")))
