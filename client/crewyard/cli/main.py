"""`crewyard`: the program. Errors become one sentence with the next step, and an exit code."""

import io
import os
import sys
from contextlib import suppress

import click

from crewyard import __version__
from crewyard.cli.commands.artifacts import artifacts
from crewyard.cli.commands.deploy import deploy
from crewyard.cli.commands.deployments import deployments, rollback
from crewyard.cli.commands.env import env
from crewyard.cli.commands.init import init
from crewyard.cli.commands.keys import keys
from crewyard.cli.commands.lint import lint
from crewyard.cli.commands.login import login, logout
from crewyard.cli.commands.logs import logs
from crewyard.cli.commands.projects import projects
from crewyard.cli.commands.run import run
from crewyard.cli.commands.runs import runs
from crewyard.cli.commands.usage import usage
from crewyard.cli.context import SERVICE, USAGE, Context
from crewyard.cli.output import Output, ReaderGone
from crewyard.errors import ApiError, CrewyardError, WrongValue
from crewyard.settings import SettingsProblem

INTERRUPTED = 130
READER_GONE = 141
"""As of a program that SIGPIPE ends: what was followed has no end that we could tell."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--url", metavar="URL", help="The service's address; else CREWYARD_URL, or that of `login`.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document, or one a line for lists.")
@click.version_option(__version__, prog_name="crewyard")
@click.pass_context
def program(context: click.Context, url: str | None, as_json: bool) -> None:
    """Runs crews on your own Kubernetes.

    The API key comes from CREWYARD_API_KEY, or from `crewyard login`.
    """
    context.obj = made = Context(url=url, as_json=as_json)
    context.call_on_close(made.close)


for _command in (
    init,
    lint,
    deploy,
    run,
    logs,
    artifacts,
    runs,
    deployments,
    rollback,
    projects,
    env,
    keys,
    usage,
    login,
    logout,
):
    program.add_command(_command)


def main() -> None:
    """The entry point of the installed command."""
    for stream in (sys.stdout, sys.stderr):
        # A letter that the terminal's encoding lacks is no reason to stop.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(call(sys.argv[1:]))


def call(arguments: list[str]) -> int:
    """Runs the program and gives its exit code; says what went wrong."""
    output = Output(False)
    try:
        found = program.main(arguments, prog_name="crewyard", standalone_mode=False)
        return int(found or 0)
    except click.exceptions.Abort:
        output.say("interrupted")
        return INTERRUPTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return USAGE
    except (SettingsProblem, WrongValue) as error:
        output.say(f"crewyard: {error}", "red")
        return USAGE
    except ApiError as error:
        output.say(f"crewyard: {error.message}", "red")
        for line in _more(error):
            output.say(line)
        return SERVICE
    except CrewyardError as error:
        output.say(f"crewyard: {error}", "red")
        return SERVICE
    except ReaderGone:
        _silence()
        return READER_GONE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        output.say(f"crewyard: {where}{error.strerror or error}", "red")
        return USAGE
    except SystemExit as stop:
        return int(stop.code or 0) if isinstance(stop.code, int | None) else 1


def _silence() -> None:
    """Nothing more is written to a pipe that is closed, not even what Python still holds at its end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _more(error: ApiError) -> list[str]:
    lines = [f"  field: {error.field}"] if error.field else []
    if error.status == 401:
        lines.append("  see CREWYARD_API_KEY, or run `crewyard login` again")
    if error.retry_after is not None:
        lines.append(f"  try again in {error.retry_after:.0f} s")
    if error.status >= 500 and error.request_id:
        lines.append(f"  the service's log has more under {error.request_id}")
    return lines


if __name__ == "__main__":
    main()
