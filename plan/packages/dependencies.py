"""Dependencies of a crew: those of a script in itself, requirements.txt, a lock, or pyproject.toml.

Called by plan.make; the dependencies pod writes the result to files.
"""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ..base.read import BaseDockerfile
from ..config.configuration import Configuration
from ..config.toml_tables import TomlTable
from ..errors import CONFIG_INVALID, DEPENDENCY_RESOLUTION, PlanError, join_limited
from ..source import Files, RepositoryFiles
from . import local_projects
from .inline_metadata import inline_requirements
from .locks.environment import is_met_anywhere
from .locks.lock import LOCKS, PYLOCK, UV_LOCK, LockedPins, LockRequest, StaleLockError, read_lock
from .own_project import build_requires, checked_directory, is_project, may_read_git
from .private_index import check_lines
from .project_table import ProjectTable, read_project_table
from .requirements import Requirements, check_added, package_name, read_requirements
from .workspace import find_workspace

# Declarations of tools that this build does not read.
_IGNORED = ("Pipfile", "Pipfile.lock", "environment.yml", "environment.yaml", "conda-lock.yml", "pixi.lock")
# What only executing the project would tell.
_UNREAD = ("setup.py", "setup.cfg")
_OTHER_REQUIREMENTS = re.compile(r"requirements[^/]*(/[^/]+)?\.(txt|in)")

# The scheme of an address, not a word of a name.
_GIT = re.compile(r"(?:^|[\s@=])git\+[a-z]+:")
_GIT_PACKAGE = "git"

# Usual names of groups that a run does not need.
_DEVELOPMENT_GROUPS = frozenset(
    {
        "build",
        "ci",
        "dev",
        "development",
        "doc",
        "docs",
        "format",
        "jupyter",
        "lint",
        "linting",
        "notebook",
        "notebooks",
        "quality",
        "test",
        "testing",
        "tests",
        "types",
        "typing",
    }
)

# Packages for Windows only. `pip freeze` there lists them, because other packages ask for them there.
_WINDOWS_PACKAGES = frozenset({"pypiwin32", "pywin32", "pywinpty"})
# What a script with dependencies of its own does not use.
_REPLACED = ("requirements.txt", "pyproject.toml")


@dataclass(frozen=True)
class DependencyDeclaration:
    """Lines for pip; `origin` are their files (empty: nothing is declared).

    `projects` are directories or archives of the repository (`""`: its root) to install as packages; building
    them needs `build_requires`. `direct` are lines without hashes beside lines with hashes. `locked`: all of
    them are complete, and their own dependencies are not installed. `pylock` is a pylock.toml with URLs for
    `lines`, whose versions the index may have dropped. `private_index`: everything is installed from wheels
    that were downloaded before. `added` are lines that are installed after all others, with what they need.
    `notes` are lines for the build log, about what is ignored.
    `base` is the crew's own Dockerfile, whose image takes the place of the base image; `system_packages` are
    Debian packages, `dockerfile_lines` are instructions after them. `pretends_version`: the version of one of
    `projects` may come from git.
    """

    origin: str
    lines: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    build_requires: tuple[str, ...] = ()
    private_index: bool = False
    direct: tuple[str, ...] = ()
    locked: bool = False
    pylock: str = ""
    added: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    system_packages: tuple[str, ...] = ()
    dockerfile_lines: tuple[str, ...] = ()
    base: BaseDockerfile | None = None
    pretends_version: bool = False

    @property
    def packages(self) -> frozenset[str]:
        """The normalized names of the required packages."""
        lines = (*self.lines, *self.direct, *self.added)
        return frozenset(name for line in lines if (name := package_name(line)))

    @property
    def empty(self) -> bool:
        """Whether nothing is installed and nothing is executed."""
        executed = self.base or self.system_packages or self.dockerfile_lines
        return not (self.files() or self.projects or executed)

    @property
    def hashed(self) -> bool:
        """Whether pip verifies hashes, and then refuses lines and projects without one."""
        return any(" --hash=" in line for line in self.lines)

    def files(self) -> dict[str, bytes]:
        """Return the files for pip by name."""
        named = {
            "requirements.txt": self.lines,
            "constraints.txt": self.constraints,
            "direct.txt": self.direct,
            "added.txt": self.added,
        }
        files = {name: _text(lines) for name, lines in named.items() if lines}
        return files | ({"pylock.toml": self.pylock.encode()} if self.pylock else {})


@dataclass
class _Collected:
    """What the directories of a crew declare so far."""

    origins: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    projects: list[str] = field(default_factory=list)
    pins: list[LockedPins] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_dependencies(
    files: Files,
    configuration: Configuration,
    project: str | None = None,
    private_index: bool = False,
    python: str = "3.11",
    base: str = "",
    inline: TomlTable | None = None,
    directory: str = "",
    requirements: Sequence[str] = (),
) -> DependencyDeclaration:
    """Return the declaration of the crew in the directory `base` of the repository `files`.

    `project` is the directory of the project with the entrypoint, `python` the crew's version. `inline` is
    the metadata in the entrypoint, if that is a script; dependencies there take the place of all others.
    `directory` is the one of the entrypoint that declares them, where the crew's own declares none.
    `requirements` are packages that the project adds. Raises PlanError(ConfigInvalid, DependencyResolution).
    """
    named = [_join(base, path) for path in configuration.directories]
    projects = _projects(files, base, named, None if project is None else _join(base, project))
    directories = dict.fromkeys((base, *([_join(base, directory)] if directory else ()), *named))
    collected = _Collected(projects=[*projects])
    chosen = _ChosenParts(configuration)
    own_lines = (
        _collect_inline(files, _join(base, inline.file), inline, python, collected) if inline else None
    )
    for each in dict.fromkeys((*directories, *projects)) if own_lines is None else ():
        # pip itself resolves dependencies of an installed project that cannot be read statically.
        readable = private_index or each not in projects
        _collect(files, each, chosen, python, readable, collected)
    chosen.check()
    declaration = _declaration(files, configuration, collected, private_index)
    # A setup.py beside other declarations is often empty, or repeats them.
    unread = () if declaration.origin else _UNREAD
    others = () if declaration.origin else _other_requirements(files, base)
    ignored = [
        path
        for each in directories
        for name in (*LOCKS, *_IGNORED, *unread, *(_REPLACED if own_lines is not None else ()))
        if (path := posixpath.join(each, name)) in files and path not in collected.origins
    ]
    ignored += others
    if ignored:
        read = declaration.origin or "no file; add a requirements.txt or a pyproject.toml"
        collected.notes.append(f"ignored: {join_limited(ignored)}; the dependencies come from {read}")
    if requirements:
        own = local_projects.local_names(files, (base, *declaration.projects))
        check_added(requirements, {*own, *local_projects.redirects_of(files, base)})
        if private_index:
            check_lines(requirements)
        added = join_limited(list(requirements))
        collected.notes.append(f"spec.build.requirements of the Project adds: {added}")
    declaration = replace(declaration, added=tuple(requirements))
    return replace(declaration, notes=(*collected.notes, *_git_notes(declaration)))


def _git_notes(declaration: DependencyDeclaration) -> list[str]:
    """Return a note if a requirement needs git, which the base images of the service do not have."""
    lines = (*declaration.lines, *declaration.direct, *declaration.added)
    # Not the line: its address may have a credential.
    names = [package_name(line) or "a requirement" for line in lines if _GIT.search(line)]
    if not names or _GIT_PACKAGE in declaration.system_packages or declaration.base:
        return []
    return [
        f"from a git repository: {join_limited(names)}; the base image needs git for it: add "
        'packages = ["git"] to [build], or use the URL of an archive'
    ]


def _other_requirements(files: Files, base: str) -> list[str]:
    """Return the files with a name like requirements-dev.txt, or in a directory `requirements`."""
    prefix = f"{base}/" if base else ""
    return sorted(
        path
        for path in (files.own_paths() if isinstance(files, RepositoryFiles) else files)
        if path.startswith(prefix) and _OTHER_REQUIREMENTS.fullmatch(path.removeprefix(prefix))
    )


class _ChosenParts:
    """Extras and groups of [build], each of which at least one project must have."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._missing = {*configuration.extras, *configuration.groups}

    def of(self, project: ProjectTable) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the chosen extras and groups of one project."""
        extras = tuple(name for name in self.configuration.extras if project.has_extra(name))
        groups = tuple(name for name in self.configuration.groups if project.has_group(name))
        self._missing -= {*extras, *groups}
        return extras, groups

    def check(self) -> None:
        """Raise PlanError(ConfigInvalid) for a name that no project has."""
        for name in sorted(self._missing):
            raise PlanError(
                CONFIG_INVALID,
                f"{self.configuration.origin}: build names {name!r}, no extra or group of pyproject.toml",
                "Correct extras and groups in [build]; with a requirements.txt they have no effect.",
            )


def _collect_inline(
    files: Files, script: str, inline: TomlTable, python: str, collected: _Collected
) -> tuple[str, ...] | None:
    """Return the dependencies in the script; collect them, or what the lock beside the script pins."""
    lock = f"{script}.lock"
    lines = inline_requirements(inline, lock in files)
    if lines is None:
        return None
    if lock in files:
        request = LockRequest(script, tuple(map(Requirement, lines)), python)
        _collect_pins(files, lock, read_lock(files, lock, request), collected)
    else:
        collected.origins.append(script)
        collected.lines += lines
    return lines


def _collect(
    files: Files, directory: str, chosen: _ChosenParts, python: str, readable: bool, collected: _Collected
) -> None:
    requirements = posixpath.join(directory, "requirements.txt")
    pyproject = posixpath.join(directory, "pyproject.toml")
    project = read_project_table(files, pyproject) if pyproject in files else None
    extras, groups = chosen.of(project) if project else ((), ())
    if requirements in files:
        collected.origins.append(requirements)
        found = read_requirements(files, requirements)
        try:
            _collect_requirements(files, directory, found, python, collected)
        except local_projects.UnpinnedSourceError as error:
            raise PlanError(
                error.reason,
                f"{error.message}, and {requirements} comes before a lock",
                f"Remove {requirements}, so that the lock applies (uv lock, poetry lock), "
                "or write the line as NAME @ URL.",
            ) from None
        if project and (missing := _not_required(project, found)):
            lacking = join_limited(missing)
            collected.notes.append(f"{requirements} comes before {pyproject}, and lacks {lacking} of it")
        return
    collected.notes += _left_out_groups(project, groups) if project else ()
    lock = _lock_of(files, directory, project)
    if lock is not None:
        declared = tuple(project.requirements(extras, groups)) if project else ()
        root = posixpath.dirname(lock)
        member = posixpath.relpath(f"/{directory}", f"/{root}")
        request = LockRequest(pyproject, declared, python, member, extras, groups)
        try:
            _collect_pins(files, lock, read_lock(files, lock, request), collected)
        except StaleLockError as error:
            if not chosen.configuration.lock_is_optional:
                raise
            collected.notes.append(error.message)
        else:
            return
    if project is None:
        return
    if readable and (dynamic := project.dynamic_files()) and all(path in files for path in dynamic):
        for path in dynamic:
            collected.origins.append(path)
            _collect_requirements(files, directory, read_requirements(files, path), python, collected)
        return
    if readable and (reason := project.undeclared_reason()):
        raise PlanError(
            DEPENDENCY_RESOLUTION,
            f"{pyproject}: {reason}; this cannot be read without executing the project",
            "Add a requirements.txt with the pins (pip freeze), a lock, or use [project] dependencies.",
        )
    resolved = local_projects.resolve(files, directory, project.requirements(extras, groups), python)
    if resolved.lines or resolved.directories:
        collected.origins.append(pyproject)
    collected.lines += resolved.lines
    collected.projects += resolved.directories


def _left_out_groups(project: ProjectTable, chosen: Collection[str]) -> Iterator[str]:
    """Yield a note on each group of Poetry that its `install` would install, but for development."""
    for name, packages in project.default_groups().items():
        if packages and name not in chosen and canonicalize_name(name) not in _DEVELOPMENT_GROUPS:
            yield (
                f"left out: the group {name} of {project.path} ({join_limited(packages)}); to install it, "
                f'add to crew.toml [build] groups = ["{name}"]'
            )


def _not_required(project: ProjectTable, requirements: Requirements) -> list[str]:
    """Return the project's dependencies that a requirements.txt without any local path does not name."""
    if requirements.local or not project.declares():
        return []
    named = {package_name(line) for line in requirements.lines}
    declared = dict.fromkeys(
        canonicalize_name(each.name) for each in project.requirements() if each.marker is None
    )
    return [name for name in declared if name not in named]


def _collect_pins(files: Files, lock: str, pins: LockedPins, collected: _Collected) -> None:
    root = posixpath.dirname(lock)
    collected.origins.append(lock)
    collected.pins.append(pins)
    collected.projects += [
        local_projects.local_directory(files, root, path, lock) for path in pins.directories
    ]


def _collect_requirements(
    files: Files, directory: str, requirements: Requirements, python: str, collected: _Collected
) -> None:
    collected.constraints += requirements.constraints
    redirects = local_projects.redirects_of(files, directory)
    hashed = {package_name(line) for line in requirements.lines if " --hash=" in line}
    for line in requirements.lines:
        # A direct reference says where the package comes from.
        if package_name(line) in _WINDOWS_PACKAGES and ";" not in line:
            collected.notes.append(f"left out: {line.partition(' --')[0]}, which is for Windows only")
        elif package_name(line) in redirects and " @ " not in line:
            wanted = _parse_line(line)
            resolved = local_projects.resolve(files, directory, [wanted], python)
            collected.lines += resolved.lines
            collected.projects += resolved.directories
        else:
            collected.lines.append(line)
    for local in requirements.local:
        if not is_met_anywhere(local.marker, python):
            continue
        target = directory
        # The crew's own project runs in place, without an installation, where its dependencies are known.
        is_own = _join(local.base, local.target) == directory
        if not is_own or not local_projects.is_static(files, directory):
            target = local_projects.local_directory(files, local.base, local.target, local.origin)
            collected.projects.append(target)
        wanted_there = local_projects.local_requirements(files, target, local.extras, local.origin)
        resolved = local_projects.resolve(files, target, wanted_there, python)
        # Beside hashes an installer refuses a package without one.
        collected.lines += [line for line in resolved.lines if package_name(line) not in hashed]
        collected.projects += resolved.directories


def _parse_line(line: str) -> Requirement:
    try:
        return Requirement(line.partition(" --")[0])
    except InvalidRequirement:
        raise PlanError(
            DEPENDENCY_RESOLUTION, f"{line[:200]!r} is not a valid requirement", "Correct that line."
        ) from None


def _lock_of(files: Files, directory: str, project: ProjectTable | None) -> str | None:
    """Return the lock of the project in `directory`: beside it, or in the root of its workspace."""
    is_lockable = project is not None and bool(project.name or project.declares())
    paths = [posixpath.join(directory, name) for name in LOCKS if is_lockable or name == PYLOCK]
    beside = next((path for path in paths if path in files), None)
    # The own uv.lock decides: other projects of the source are not read, and may be damaged.
    if project is None or not project.name or (beside and posixpath.basename(beside) == UV_LOCK):
        return beside
    workspace = find_workspace(files, directory)
    shared = posixpath.join(workspace.root, UV_LOCK) if workspace else None
    return shared if shared in files else beside


def _declaration(
    files: Files, configuration: Configuration, collected: _Collected, private_index: bool
) -> DependencyDeclaration:
    pins, lines = collected.pins, collected.lines
    pinned = frozenset(name for of_lock in pins for name in of_lock.names)
    lines += [line for line in configuration.requires if package_name(line) not in pinned]
    origins = collected.origins or ([configuration.origin] if configuration.requires else [])
    # Only pins of one kind are complete; beside other lines they are versions.
    locked = bool(pins) and not lines and not collected.constraints
    pin_lines = [line for of_lock in pins for line in of_lock.lines]
    direct = tuple(dict.fromkeys(line for of_lock in pins for line in of_lock.direct))
    if not locked and not any(" --hash=" in line for line in lines):
        pin_lines = [line.partition(" --hash=")[0] for line in pin_lines]
    projects = tuple(dict.fromkeys(collected.projects))
    all_lines = tuple(dict.fromkeys((*pin_lines, *lines)))
    if direct and not locked:
        all_lines, direct = (*all_lines, *direct), ()
    tools = build_requires(files, projects)
    _check_tools(files, projects, tools)
    declaration = DependencyDeclaration(
        ", ".join(dict.fromkeys(origins)) or (f"the project in {projects[0] or '.'}" if projects else ""),
        all_lines,
        tuple(dict.fromkeys(collected.constraints)),
        projects,
        tools if private_index else (),
        private_index,
        direct,
        locked,
        # Of several locks one command installs all; with a private index nothing is taken from elsewhere.
        pins[0].pylock if locked and len(pins) == 1 and not private_index else "",
        system_packages=configuration.packages,
        dockerfile_lines=configuration.dockerfile_lines,
        pretends_version=may_read_git(files, projects),
    )
    if private_index:
        check_lines((*all_lines, *direct, *declaration.constraints, *tools))
    return declaration


def _check_tools(files: Files, projects: Iterable[str], tools: Iterable[str]) -> None:
    names = local_projects.local_names(files, projects)
    for tool in tools:
        name = package_name(tool)
        if name in names:
            raise PlanError(
                DEPENDENCY_RESOLUTION,
                f"[build-system] requires {tool}, which is a project of the repository",
                "It would come from the package index; use a released build tool.",
            )


def _projects(files: Files, base: str, named: list[str], project: str | None) -> tuple[str, ...]:
    projects = [checked_directory(path) for path in named if path != base and is_project(files, path)]
    return tuple(dict.fromkeys(projects if project is None else [*projects, project]))


def _join(base: str, path: str) -> str:
    joined = posixpath.normpath(posixpath.join(base, path))
    return "" if joined == "." else joined


def _text(lines: tuple[str, ...]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
