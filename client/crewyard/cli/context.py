"""Context of every command: settings, client and output. Created by `cli.main`."""

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, TypeVar

import click

from crewyard.cli.output import Output
from crewyard.client import Client
from crewyard.errors import CrewyardError
from crewyard.plan.file_entrypoint import is_file_entrypoint
from crewyard.settings import Settings, SettingsError, remembered_project, resolve

_MIN_REPORTED_WAIT_SECONDS = 2.0
_CURRENT = Path()
F = TypeVar("F", bound=Callable[..., Any])

OK, FAILED, USAGE, SERVICE, CANCELED = 0, 1, 2, 3, 4
"""Exit codes: success; run or deployment failed; usage error; service error or unavailable; canceled."""


@dataclass
class CliContext:
    """One invocation of the program."""

    url: str | None = None
    api_key: str | None = None
    project: str | None = None
    as_json: bool = False
    _settings: Settings | None = field(default=None, repr=False)
    _client: Client | None = field(default=None, repr=False)

    @property
    def settings(self) -> Settings:
        """The settings, resolved on first use. Raises SettingsError."""
        if self._settings is None:
            self._settings = resolve(self.url, self.api_key, self.project)
        return self._settings

    @property
    def client(self) -> Client:
        """The client, created on first use."""
        if self._client is None:
            self._client = Client(settings=self.settings, waiting=self._waiting)
        return self._client

    @property
    def output(self) -> Output:
        """The output of the command."""
        return Output(self.as_json)

    def _waiting(self, problem: CrewyardError, seconds: float) -> None:
        if seconds >= _MIN_REPORTED_WAIT_SECONDS:
            self.output.status(f"{problem}; retrying in {seconds:.0f} s")

    def named_project(self, given: str | None, directory: Path = _CURRENT) -> str:
        """Return the project to use: that of the option, of CREWYARD_PROJECT, of the directory, of `login`.

        An empty option, as of an unset variable, stands for none of the others. Raises SettingsError if no
        project is named.
        """
        name = given
        if name is None:
            own = os.environ.get("CREWYARD_PROJECT") or remembered_project(directory)
            name = own or self.settings.project
        if not name:
            raise SettingsError("no project is given; use --project, or set CREWYARD_PROJECT")
        return name

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()


def with_context(function: F) -> F:
    """Pass the CliContext to a command and add the option --json, which may also precede the command."""

    @click.option("--json", "as_json", is_flag=True, help="Print JSON; lists print one document per line.")
    @click.pass_context
    @functools.wraps(function)
    def command(click_context: click.Context, /, *args: Any, as_json: bool, **options: Any) -> Any:
        context = click_context.find_object(CliContext)
        assert context is not None
        context.as_json = context.as_json or as_json
        return function(context, *args, **options)

    return command  # type: ignore[return-value]


def normal_path(_: click.Context, __: click.Parameter, given: str | None) -> str | None:
    """Return an entrypoint as the service takes it: a file as its path, so `./main.py` as `main.py`.

    The callback of options that take one.
    """
    is_file = given is not None and is_file_entrypoint(given)
    return PurePath(given).as_posix() if given is not None and is_file else given


def project_option(function: F) -> F:
    """Add the option --project."""
    return click.option("--project", "-p", metavar="NAME", help="The project (default: CREWYARD_PROJECT).")(
        function
    )
