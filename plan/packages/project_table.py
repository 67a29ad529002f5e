"""What a pyproject.toml declares: requirements, extras, groups, and names that it redirects.

Called by plan.packages.dependencies and plan.packages.local_projects.

Reads [project], [dependency-groups] and static [tool.poetry] tables; executes nothing.
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.dependency_groups import DependencyGroupResolver
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from ..config.toml_tables import TomlTable, read_toml
from ..errors import CONFIG_INVALID, PlanError, join_limited
from ..source import Files
from .poetry_table import poetry_requirement

_MAX_NESTED_EXTRAS = 50


class DeclaredRequirement(Requirement):
    """A requirement that keeps its author's text: another order of its versions is no other dependency."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._text = text.strip()

    def __str__(self) -> str:
        return self._text


@dataclass(frozen=True)
class Redirect:
    """Where a dependency comes from instead of the package index: one line of [tool.uv.sources] or of Poetry.

    Its path is relative to the directory `base`.
    """

    origin: str
    base: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class ProjectTable:
    """A pyproject.toml; `redirects` are by normalized name."""

    path: str
    root: TomlTable
    name: str
    redirects: Mapping[str, Redirect]

    def declares(self) -> bool:
        """Return whether its dependencies can be read without executing the project."""
        return self._list_at("project", "dependencies") is not None or bool(self._poetry("dependencies"))

    def is_static(self) -> bool:
        """Return whether all of its dependencies can be read, even where there are none."""
        is_project = self.root.table("project") is not None or bool(self.name)
        return self.declares() or (is_project and self.undeclared_reason() is None)

    def requirements(self, extras: Iterable[str] = (), groups: Iterable[str] = ()) -> list[Requirement]:
        """Return its requirements with those of extras and of its groups; its own extras are expanded.

        Raises PlanError(ConfigInvalid).
        """
        listed = self._list_at("project", "dependencies")
        if listed is None:
            requirements = self._poetry_requirements("dependencies", self._poetry("dependencies"))
        else:
            requirements = [self._parse(line) for line in listed]
        for group in groups:
            requirements += self._group(group)
        pending, seen = list(extras), set[str]()
        found: list[Requirement] = []
        while pending or requirements:
            if requirements:
                requirement = requirements.pop(0)
                if canonicalize_name(requirement.name) == self.name:
                    pending += sorted(requirement.extras)
                else:
                    found.append(requirement)
                continue
            extra = canonicalize_name(pending.pop(0))
            if extra not in seen:
                seen.add(extra)
                if len(seen) > _MAX_NESTED_EXTRAS:
                    raise PlanError(CONFIG_INVALID, f"{self.path} has too many extras", "Merge some of them.")
                requirements = self._extra(extra)
        return found

    def undeclared_reason(self) -> str | None:
        """Return why the dependencies cannot be read, or None where there are none to read.

        Raises PlanError(ConfigInvalid).
        """
        project = self.root.table("project")
        dynamic = project.texts_at("dynamic", "version") if project else ()
        if "dependencies" in dynamic and not self.declares():
            return "[project] declares its dependencies as dynamic"
        return None

    def dynamic_files(self) -> tuple[str, ...]:
        """Return the files from which setuptools reads the dependencies; none if they are not dynamic."""
        table: TomlTable | None = self.root if self.undeclared_reason() else None
        for key in ("tool", "setuptools", "dynamic", "dependencies"):
            table = table.table(key) if table else None
        named = table.values.get("file") if table else None
        listed = named.split(",") if isinstance(named, str) else named
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            return ()
        base = posixpath.dirname(self.path)
        return tuple(posixpath.normpath(posixpath.join(base, each.strip())) for each in listed)

    def default_groups(self) -> dict[str, list[str]]:
        """Return the groups that `poetry install` installs, with the names of their packages."""
        return {
            name: [*table.get("dependencies", {})]
            for name, table in self._poetry("group").items()
            if not table.get("optional")
        }

    def has_extra(self, extra: str) -> bool:
        """Return whether it declares an extra."""
        return canonicalize_name(extra) in self._extras()

    def has_group(self, group: str) -> bool:
        """Return whether it declares a dependency group."""
        return canonicalize_name(group) in self._groups()

    def _extras(self) -> dict[str, Any]:
        optional = self._optional()
        listed = self._poetry("extras") if optional is None else optional.values
        return {canonicalize_name(name): lines for name, lines in listed.items()}

    def _optional(self) -> TomlTable | None:
        project = self.root.table("project")
        return project.table("optional-dependencies") if project else None

    def _extra(self, extra: str) -> list[Requirement]:
        extras = self._extras()
        if extra not in extras:
            raise PlanError(
                CONFIG_INVALID,
                f"{self.path} has no extra {extra!r}; it has {join_limited(sorted(extras)) or 'none'}",
                "Correct extras in [build].",
            )
        if self._optional() is None:
            # Poetry: names of optional dependencies
            has_list = self._list_at("project", "dependencies") is not None
            listed = _texts(self.root, f"tool.poetry.extras.{extra}", extras[extra])
            names = {canonicalize_name(name) for name in listed}
            table = {k: v for k, v in self._poetry("dependencies").items() if canonicalize_name(k) in names}
            # Poetry ignores a name that its table lacks; beside [project] the extra itself declares it.
            known = {canonicalize_name(name) for name in table} if has_list else names
            declared = [self._parse(line) for line in listed if canonicalize_name(line) not in known]
            return [*self._poetry_requirements("dependencies", table, optional=True), *declared]
        return [
            self._parse(line)
            for line in _texts(self.root, f"project.optional-dependencies.{extra}", extras[extra])
        ]

    def _groups(self) -> dict[str, str]:
        """Return the names of its groups by normalized name."""
        groups = self.root.table("dependency-groups")
        names = (*self._poetry("group"), *(groups.values if groups else ()))
        return {canonicalize_name(name): name for name in names}

    def _group(self, group: str) -> list[Requirement]:
        name = self._groups()[canonicalize_name(group)]
        groups = self.root.table("dependency-groups")
        if groups is None or name not in groups.values:
            lines = self._poetry("group")[name].get("dependencies", {})
            return self._poetry_requirements(f"group.{name}.dependencies", lines)
        try:
            return list(DependencyGroupResolver(groups.values).resolve(name))
        except Exception as error:  # its errors have no common class
            raise groups.error(name, f"cannot be read: {error}", "Correct that group.") from None

    def _poetry(self, key: str) -> Mapping[str, Any]:
        tool = self.root.table("tool")
        poetry = tool.table("poetry") if tool else None
        table = poetry.table(key) if poetry else None
        return table.values if table else {}

    def _poetry_requirements(
        self, key: str, table: Mapping[str, Any], optional: bool = False
    ) -> list[Requirement]:
        requirements = []
        for name, constraint in table.items():
            for option in constraint if isinstance(constraint, list) else [constraint]:
                if name == "python" or (isinstance(option, dict) and option.get("optional") and not optional):
                    continue
                try:
                    requirements.append(poetry_requirement(name, option))
                except (ValueError, TypeError, AttributeError) as error:
                    problem = f"{self.path}: tool.poetry.{key}.{name} cannot be read: {error}"
                    raise PlanError(CONFIG_INVALID, problem, 'For example: name = "^1.2".') from None
        return requirements

    def _list_at(self, table: str, key: str) -> tuple[str, ...] | None:
        found = self.root.table(table)
        return None if found is None or key not in found.values else found.texts_at(key, "langgraph>=1")

    def _parse(self, line: str) -> Requirement:
        try:
            return DeclaredRequirement(line)
        except InvalidRequirement:
            project = self.root.table("project") or self.root
            raise project.error(
                "dependencies", f"has {line!r}, which is not a package", "List packages only."
            ) from None


def read_project_table(files: Files, path: str) -> ProjectTable:
    """Return the pyproject.toml at `path`. Raises PlanError(ConfigInvalid)."""
    root = read_toml(files, path)
    project, tool = root.table("project"), root.table("tool")
    name = project.values.get("name") if project else None
    poetry = tool.table("poetry") if tool else None
    if not isinstance(name, str):
        name = poetry.values.get("name") if poetry else None
    return ProjectTable(
        path, root, canonicalize_name(name) if isinstance(name, str) else "", _redirects(root, poetry)
    )


_REDIRECTING = frozenset({"path", "git", "url", "source"})
"""Keys of a dependency of Poetry that say where it is, other than in the package index."""


# Poetry's name of the public index, in any case; no source of a pyproject.toml can have it.
_PUBLIC_SOURCE = "pypi"


def _is_elsewhere(option: object) -> bool:
    """Return whether an option of a dependency of Poetry says that it is not in the package index."""
    if not isinstance(option, dict):
        return False
    is_public = str(option.get("source", "")).lower() == _PUBLIC_SOURCE
    return bool(_REDIRECTING & option.keys() - ({"source"} if is_public else set()))


def _redirects(root: TomlTable, poetry: TomlTable | None) -> dict[str, Redirect]:
    redirects: dict[str, Redirect] = {}
    base = posixpath.dirname(root.file)
    for table in _poetry_tables(poetry) if poetry else ():
        for name, values in table.values.items():
            options = values if isinstance(values, list) else [values]
            if any(map(_is_elsewhere, options)):
                redirects[canonicalize_name(name)] = Redirect(table.location(name), base, _only(options))
    return {**redirects, **uv_redirects(root)}


def _poetry_tables(poetry: TomlTable) -> Iterator[TomlTable]:
    """Yield the dependencies of [tool.poetry] and of its groups."""
    groups = poetry.table("group")
    of_groups = [groups.table(name) for name in groups.values] if groups else []
    for each in (poetry, *of_groups):
        if each and (table := each.table("dependencies")):
            yield table


def _only(options: list[Any]) -> Any:
    """Return the only option. Several need a lock, which has chosen one for each platform."""
    return options[0] if len(options) == 1 else {"several": options}


def uv_redirects(root: TomlTable) -> dict[str, Redirect]:
    """Return [tool.uv.sources] of a pyproject.toml. Raises PlanError."""
    tool = root.table("tool")
    uv = tool.table("uv") if tool else None
    sources = uv.table("sources") if uv else None
    if sources is None:
        return {}
    redirects: dict[str, Redirect] = {}
    base = posixpath.dirname(root.file)
    for name, values in sources.values.items():
        option = _only(values if isinstance(values, list) else [values])
        if not isinstance(option, dict):
            raise sources.error(name, "must be a table", "For example: {workspace = true}.")
        redirects[canonicalize_name(name)] = Redirect(sources.location(name), base, option)
    return redirects


def _texts(root: TomlTable, key: str, values: object) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(text, str) for text in values):
        raise root.error(key, "must be a list of strings", 'For example: ["langgraph>=1"].')
    return values
