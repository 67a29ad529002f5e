"""What every command is given: settings, a client, and where to say something. Made by `cli.main`."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

from crewyard.cli.output import Output
from crewyard.client import Client
from crewyard.errors import CrewyardError
from crewyard.settings import Settings, SettingsProblem, resolve

_WORTH_A_WORD = 2.0
F = TypeVar("F", bound=Callable[..., Any])

OK, FAILED, USAGE, SERVICE, CANCELED = 0, 1, 2, 3, 4
"""Exit codes: done; the run or the deployment failed; wrong use; the service refused or is away; canceled."""


@dataclass
class Context:
    """One call of the program."""

    url: str | None = None
    api_key: str | None = None
    project: str | None = None
    as_json: bool = False
    _settings: Settings | None = field(default=None, repr=False)
    _client: Client | None = field(default=None, repr=False)

    @property
    def settings(self) -> Settings:
        """Where the service is. Raises SettingsProblem."""
        if self._settings is None:
            self._settings = resolve(self.url, self.api_key, self.project)
        return self._settings

    @property
    def client(self) -> Client:
        """The client, made when it is first needed."""
        if self._client is None:
            self._client = Client(settings=self.settings, waiting=self._waiting)
        return self._client

    @property
    def output(self) -> Output:
        """Where to say something."""
        return Output(self.as_json)

    def _waiting(self, problem: CrewyardError, seconds: float) -> None:
        if seconds >= _WORTH_A_WORD:
            self.output.say(f"{problem}; trying again in {seconds:.0f} s")

    def named_project(self, given: str | None) -> str:
        """The project that is meant. Raises SettingsProblem where none is said anywhere."""
        found = given or self.settings.project
        if not found:
            raise SettingsProblem("which project? Give --project, or set CREWYARD_PROJECT")
        return found

    def close(self) -> None:
        """Ends the connections."""
        if self._client is not None:
            self._client.close()


def with_context(function: F) -> F:
    """Gives a command its Context, and the option --json, which may also stand before the command."""

    @click.option("--json", "as_json", is_flag=True, help="One JSON document, or one a line for lists.")
    @click.pass_context
    @functools.wraps(function)
    def command(click_context: click.Context, /, *args: Any, as_json: bool, **options: Any) -> Any:
        context = click_context.find_object(Context)
        assert context is not None
        context.as_json = context.as_json or as_json
        return function(context, *args, **options)

    return command  # type: ignore[return-value]


def project_option(function: F) -> F:
    """The option --project."""
    return click.option("--project", "-p", metavar="NAME", help="The project; else CREWYARD_PROJECT.")(
        function
    )
