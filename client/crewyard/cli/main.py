"""`crewyard`: the program. Errors become one sentence with the next step, and an exit code."""

import errno
import io
import os
import sys
from contextlib import suppress

import click

from crewyard import __version__
from crewyard.cli.commands.artifacts import artifacts
from crewyard.cli.commands.audit import audit
from crewyard.cli.commands.automation.notifications import notifications
from crewyard.cli.commands.automation.schedules import schedules
from crewyard.cli.commands.deploy import deploy
from crewyard.cli.commands.deployments import deployments, rollback
from crewyard.cli.commands.env import env
from crewyard.cli.commands.init import init
from crewyard.cli.commands.inputs import inputs
from crewyard.cli.commands.keys import keys
from crewyard.cli.commands.lint import lint
from crewyard.cli.commands.login import login, logout
from crewyard.cli.commands.logs import logs
from crewyard.cli.commands.projects import projects
from crewyard.cli.commands.run import rerun, run
from crewyard.cli.commands.runs import runs
from crewyard.cli.commands.usage import usage
from crewyard.cli.context import SERVICE, USAGE, CliContext
from crewyard.cli.output import Output, StdoutClosed
from crewyard.errors import ApiError, CrewyardError, LocalFileError, WrongValue
from crewyard.settings import SettingsError

EXIT_INTERRUPTED = 130
EXIT_STDOUT_CLOSED = 141
"""The exit code of a program killed by SIGPIPE; the outcome of the followed run is unknown."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--url", metavar="URL", help="Address of the service (default: CREWYARD_URL, then `login`).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; lists print one document per line.")
@click.version_option(__version__, prog_name="crewyard")
@click.pass_context
def program(context: click.Context, url: str | None, as_json: bool) -> None:
    """Run crews on your own Kubernetes cluster.

    The API key comes from CREWYARD_API_KEY, or from `crewyard login`.
    """
    context.obj = cli_context = CliContext(url=url, as_json=as_json)
    context.call_on_close(cli_context.close)


for _command in (
    init,
    lint,
    deploy,
    run,
    rerun,
    logs,
    artifacts,
    runs,
    deployments,
    rollback,
    projects,
    env,
    schedules,
    notifications,
    keys,
    audit,
    inputs,
    usage,
    login,
    logout,
):
    program.add_command(_command)


def main() -> None:
    """Run the installed command."""
    for stream in (sys.stdout, sys.stderr):
        # Escape characters that the terminal's encoding lacks instead of failing.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = call(sys.argv[1:])
    except StdoutClosed:
        _discard_output()
        code = EXIT_STDOUT_CLOSED
    sys.exit(code)


def call(arguments: list[str]) -> int:
    """Run the program, print its errors, and return its exit code. Raises StdoutClosed."""
    output = Output(False)
    try:
        code = program.main(arguments, prog_name="crewyard", standalone_mode=False)
        return int(code or 0)
    except click.exceptions.Abort:
        output.status("interrupted")
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show()
        return USAGE
    except (SettingsError, WrongValue, LocalFileError) as error:
        output.status(f"crewyard: {error}", "red")
        return USAGE
    except ApiError as error:
        output.status(f"crewyard: {error.message}", "red")
        for line in _next_steps(error):
            output.status(line)
        return SERVICE
    except CrewyardError as error:
        output.status(f"crewyard: {error}", "red")
        return SERVICE
    except OSError as error:
        if error.errno == errno.EINVAL and error.filename is None:
            raise StdoutClosed from None  # Windows says so of a pipe that its reader has closed.
        prefix = f"{error.filename}: " if error.filename else ""
        output.status(f"crewyard: {prefix}{error.strerror or error}", "red")
        return USAGE
    except SystemExit as stop:
        return int(stop.code or 0) if isinstance(stop.code, int | None) else 1


def _discard_output() -> None:
    """Redirect both streams to /dev/null, so the flush at exit does not fail on the closed pipe."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _next_steps(error: ApiError) -> list[str]:
    lines = [f"  field: {error.field}"] if error.field else []
    if error.status == 401:
        lines.append("  check CREWYARD_API_KEY, or run `crewyard login` again")
    if error.retry_after is not None:
        lines.append(f"  retry in {error.retry_after:.0f} s")
    if error.status >= 500 and error.request_id:
        lines.append(f"  see request {error.request_id} in the log of the service")
    return lines


if __name__ == "__main__":
    main()
