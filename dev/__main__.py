"""Command line of the Makefile: `python3 -m dev` with up, down, deploy, live, env, status and others."""

import argparse
import os
import sys

from dev import environment, go_build, packages, settings, state
from dev.cluster import choice
from dev.cluster import cluster as clusters
from dev.errors import DevClusterError
from dev.net import proxy_bypass
from dev.process.parallel import parallel
from dev.progress import StepProgress


def parser() -> argparse.ArgumentParser:
    """Return the argument parser."""
    top = argparse.ArgumentParser(
        prog="python3 -m dev", description="Start, stop and inspect the dev cluster of Crewyard."
    )
    commands = top.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start what is not running and install Crewyard")
    up.add_argument(
        "--ha", choices=("0", "1"), help="1: two replicas with PostgreSQL, S3 and Redis; 0: one replica"
    )
    down = commands.add_parser("down", help="stop everything")
    down.add_argument("--purge", action="store_true", help="also remove images, data and keys")
    commands.add_parser("deploy", help="build and install the current code")
    commands.add_parser("live", help="run the checkout's code and restart it when a file changes")
    commands.add_parser("env", help="print export lines for a shell")
    commands.add_parser("status", help="show what is running")
    commands.add_parser("tools", help="install and build the tools that only tests use")
    commands.add_parser("nightly-tools", help="build cosign and Kueue, which only test-all uses")
    fit = commands.add_parser("fit", help="fail if a make target must not run on this cluster")
    fit.add_argument("target")
    return top


def main(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    options = parser().parse_args(arguments)
    progress = StepProgress()
    bypass = proxy_bypass.variables(os.environ)
    inherited = {**os.environ, **bypass}
    os.environ.update({**bypass, "PATH": packages.search_path(os.environ.get("PATH", ""))})
    try:
        state_settings = settings.from_environment(inherited)
        if options.command in ("tools", "nightly-tools"):
            choice.recorded(state_settings)  # names another user's directory
            state.claim(state_settings)
        if options.command == "tools":
            with parallel(progress) as start:
                start(packages.install, state_settings, progress, packages.TEST_PACKAGES)
                start(go_build.build_test_tools, state_settings, progress)
            return 0
        if options.command == "nightly-tools":
            go_build.build_test_tools(state_settings, progress, go_build.NIGHTLY_TOOLS)
            return 0
        # In the Makefile `fit` runs before `up` and must check the cluster that `up` will choose.
        cluster = clusters.cluster_name(state_settings, inherited, options.command in ("up", "fit"))
        if options.command == "fit":
            choice.check(cluster, options.target)
            return 0
        if options.command == "up" and options.ha:
            from dev.embedded.cluster import EmbeddedCluster

            choice.check_replicas(cluster)
            EmbeddedCluster(state_settings, inherited, progress).up(options.ha == "1")
            return 0
        return _run(options, clusters.create(cluster, state_settings, inherited, progress))
    except DevClusterError as error:
        print(f"\n{error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return 130


def _run(options: argparse.Namespace, dev_cluster: clusters.DevCluster) -> int:
    match options.command:
        case "up":
            dev_cluster.up()
        case "down":
            dev_cluster.down(options.purge)
        case "deploy":
            dev_cluster.deploy()
        case "live":
            dev_cluster.develop()
        case "env":
            sys.stdout.write(environment.exports(dev_cluster.env()))
            return _report(dev_cluster.problems())
        case "status":
            print(dev_cluster.status())
            return 1 if dev_cluster.problems() else 0
    return 0


def _report(problems: list[str]) -> int:
    if problems:
        print(f"{'; '.join(problems)}. Run `make up`.", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
