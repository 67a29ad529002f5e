"""`python3 -m dev up | down [--purge] | deploy | env | status | tools`: what the Makefile calls."""

import argparse
import os
import sys

from dev import build, bypass, environment, packages, settings
from dev.errors import GroundError
from dev.ground import chosen
from dev.progress import Progress


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="python3 -m dev", description="The Kubernetes that Crewyard is developed on."
    )
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start what does not run and install the service")
    down = commands.add_parser("down", help="stop all")
    down.add_argument("--purge", action="store_true", help="also remove images, data and keys")
    commands.add_parser("deploy", help="install the present code")
    commands.add_parser("env", help="print export lines for a shell")
    commands.add_parser("status", help="show what runs")
    commands.add_parser("tools", help="install and build what only tests use")
    return top


def main(arguments: list[str]) -> int:
    """Runs one command and gives back the exit code."""
    options = parser().parse_args(arguments)
    progress = Progress()
    around = bypass.variables(os.environ)
    inherited = {**os.environ, **around}
    os.environ.update({**around, "PATH": packages.search_path(os.environ.get("PATH", ""))})
    try:
        if options.command == "tools":
            found = settings.from_environment(inherited)
            found.logs.mkdir(parents=True, exist_ok=True)
            packages.install(found, progress, packages.TESTED_WITH)
            build.workflow_tools(found, progress)
            return 0
        ground = chosen(settings.from_environment(inherited), inherited, progress)
        match options.command:
            case "up":
                ground.up()
            case "down":
                ground.down(options.purge)
            case "deploy":
                ground.deploy()
            case "env":
                sys.stdout.write(environment.exports(ground.env()))
                return _report(ground.problems())
            case "status":
                print(ground.status())
                return 1 if ground.problems() else 0
    except GroundError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _report(problems: list[str]) -> int:
    if problems:
        print(f"{'; '.join(problems)}. Run `make up`.", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
