"""`crewyard projects`: list, show, create, change and delete projects."""

from typing import Any

import click

from crewyard.cli.confirmation import confirm, yes_option
from crewyard.cli.context import CliContext, with_context
from crewyard.cli.output import Column, age, display, field
from crewyard.cli.pages import items


@click.group()
def projects() -> None:
    """Manage projects, the named containers of deployments."""


_COLUMNS = (
    field("name"),
    field("plan"),
    field("active_deployment_id", "ACTIVE"),
    Column("READY", lambda row: display(row["ready"]["status"])),
    age("created_at"),
)
_NAMESPACE = field("namespace")


def _parse_egress(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[dict[str, Any], ...]:
    """Return entries of `run.egress`: NAMESPACE[/SERVICE or /LABEL=VALUE,…][:PORT,…] each."""
    return tuple(map(_entry, values))


def _entry(value: str) -> dict[str, Any]:
    place, colon, ports = value.partition(":")
    namespace, slash, pods = place.partition("/")
    labels = dict(part.split("=", 1) for part in pods.split(",") if "=" in part)
    is_partial = bool(labels) and len(labels) != len(pods.split(","))
    # An empty or dropped part would allow more than what was meant.
    if not namespace or (slash and not pods) or is_partial or (colon and not _are_ports(ports)):
        raise click.BadParameter(f"{value!r} is not like models/ollama:11434")
    return {
        "namespace": namespace,
        **({"pod_selector": {"match_labels": labels}} if labels else {"service": pods} if pods else {}),
        **({"ports": [int(port) for port in ports.split(",")]} if ports else {}),
    }


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given; the service refuses empty ones, as of an unset variable."""
    return {name: value for name, value in options.items() if value is not None}


def _are_ports(text: str) -> bool:
    return all(port.isdecimal() for port in text.split(","))


def _text(entry: dict[str, Any]) -> str:
    """Return an entry of `run.egress` as --egress takes it."""
    labels = (entry.get("pod_selector") or {}).get("match_labels") or {}
    pods = entry.get("service") or ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    ports = ",".join(map(str, entry.get("ports") or ()))
    return f"{entry['namespace']}{f'/{pods}' if pods else ''}{f':{ports}' if ports else ''}"


_egress_option = click.option(
    "--egress",
    metavar="NAMESPACE/SERVICE[:PORT]",
    multiple=True,
    callback=_parse_egress,
    help="Pods in the cluster that runs may connect to, as far as the installation allows; repeatable.",
)


_warm_option = click.option(
    "--warm",
    type=click.IntRange(0, 100),
    metavar="N",
    help="Pods that wait for a run, with the entrypoint imported; the plan limits it.",
)

_warm_builds_option = click.option(
    "--warm-builds",
    type=click.IntRange(0, 20),
    metavar="N",
    help="Pods that wait for a build; the installation limits it.",
)


@projects.command("list")
@with_context
def list_projects(context: CliContext) -> None:
    """List the projects that the key can read."""
    rows = items(context.client.list_projects, None)
    context.output.rows(rows, _COLUMNS, "No projects found. Create one: crewyard projects create NAME")


@projects.command("show")
@click.argument("name")
@with_context
def show(context: CliContext, name: str) -> None:
    """Show one project."""
    creator = field("created_by")
    source = Column("SOURCE", lambda row: display(((row["source"] or {}).get("git") or {}).get("url")))
    message = Column("MESSAGE", lambda row: display(row["ready"]["message"]))
    egress = Column(
        "EGRESS", lambda row: display(" ".join(map(_text, (row["run"] or {}).get("egress") or ())) or None)
    )
    limited = Column("LIMITED", lambda row: display((row.get("limited") or {}).get("message")))
    warm = Column("WARM", lambda row: display((row["run"] or {}).get("warm")))
    warm_builds = Column("WARM BUILDS", lambda row: display((row["build"] or {}).get("warm")))
    added = Column("REQUIREMENTS", lambda row: display((row["build"] or {}).get("requirements")))
    columns = (*_COLUMNS, creator, _NAMESPACE, source, message, added, egress, warm, warm_builds, limited)
    context.output.details(context.client.get_project(name), columns)


_requirement_option = click.option(
    "--requirement",
    "requirements",
    metavar="LINE",
    multiple=True,
    help="Package that the source imports but does not declare, as in requirements.txt; from the next "
    "deployment on. Repeatable.",
)


@projects.command("create")
@click.argument("name")
@click.option("--namespace", help="The namespace of its team (default: the installation's own one).")
@click.option("--plan", help="The plan, such as free or pro.")
@click.option("--git", "url", metavar="URL", help="Git repository to deploy new commits from.")
@click.option("--branch", help="Branch to follow (default: the repository's default branch).")
@click.option("--path", help="Directory of the crew in the repository.")
@_requirement_option
@_egress_option
@_warm_option
@_warm_builds_option
@with_context
def create(
    context: CliContext,
    name: str,
    namespace: str | None,
    plan: str | None,
    url: str | None,
    branch: str | None,
    path: str | None,
    requirements: tuple[str, ...],
    egress: tuple[dict[str, Any], ...],
    warm: int | None,
    warm_builds: int | None,
) -> None:
    """Create a project."""
    if url is None and not (branch is None and path is None):
        raise click.UsageError("--branch and --path need --git")
    git = {"url": url, "ref": None if branch is None else {"branch": branch}, "path": path}
    given = {"source": None if url is None else {"git": _given(git)}, "plan": plan, "namespace": namespace}
    spec = _given(given)
    build: dict[str, Any] = {"requirements": list(requirements)} if requirements else {}
    build |= {"warm": warm_builds} if warm_builds else {}
    run: dict[str, Any] = {"egress": list(egress)} if egress else {}
    run |= {"warm": warm} if warm else {}
    spec |= {"build": build} if build else {}
    spec |= {"run": run} if run else {}
    columns = (*_COLUMNS, _NAMESPACE) if namespace else _COLUMNS
    context.output.details(context.client.create_project(name, **spec), columns)
    if url is None:
        context.output.status(f"Deploy a crew to it: crewyard deploy --project {name}")


@projects.command("set")
@click.argument("name")
@_requirement_option
@click.option("--no-requirements", is_flag=True, help="Remove all packages that --requirement set.")
@_egress_option
@click.option("--no-egress", is_flag=True, help="Remove all destinations that --egress set.")
@_warm_option
@_warm_builds_option
@click.option("--month-tokens", type=click.IntRange(0), help="Budget of tokens for each month.")
@click.option("--month-cost", type=click.FloatRange(0), help="Budget of cost for each month.")
@click.option("--run-tokens", type=click.IntRange(0), help="Budget of tokens for each run.")
@click.option("--run-cost", type=click.FloatRange(0), help="Budget of cost for each run.")
@click.option("--no-budget", is_flag=True, help="Remove all budgets.")
@with_context
def set_fields(
    context: CliContext,
    name: str,
    requirements: tuple[str, ...],
    no_requirements: bool,
    egress: tuple[dict[str, Any], ...],
    no_egress: bool,
    warm: int | None,
    warm_builds: int | None,
    month_tokens: int | None,
    month_cost: float | None,
    run_tokens: int | None,
    run_cost: float | None,
    no_budget: bool,
) -> None:
    """Change a project's settings."""
    given = {
        "month": {"tokens": month_tokens, "cost": month_cost},
        "run": {"tokens": run_tokens, "cost": run_cost},
    }
    budget = {
        name: {field: limit for field, limit in limits.items() if limit is not None}
        for name, limits in given.items()
        if limits != {"tokens": None, "cost": None}
    }
    if egress and no_egress:
        raise click.UsageError("give --egress, or --no-egress to remove what it allowed, not both")
    if requirements and no_requirements:
        raise click.UsageError("give --requirement, or --no-requirements to remove all of them, not both")
    if budget and no_budget:
        raise click.UsageError("give --no-budget, or limits of tokens and cost, not both")
    run: dict[str, Any] = {"egress": list(egress) or None} if egress or no_egress else {}
    run |= {"warm": warm or None} if warm is not None else {}
    build: dict[str, Any] = (
        {"requirements": list(requirements) or None} if requirements or no_requirements else {}
    )
    build |= {"warm": warm_builds or None} if warm_builds is not None else {}
    change: dict[str, Any] = {"run": run} if run else {}
    change |= {"build": build} if build else {}
    if budget or no_budget:
        change["budget"] = budget or None
    if not change:
        raise click.UsageError(
            "give --requirement, --no-requirements, --egress, --no-egress, --warm, --warm-builds, "
            "--month-tokens, --month-cost, --run-tokens, --run-cost or --no-budget"
        )
    changed = context.client.change_project(name, **change)
    context.output.item(changed, f"{name} is changed; values in effect: crewyard projects show {name}")


@projects.command("delete")
@click.argument("name")
@yes_option
@with_context
def delete(context: CliContext, name: str, yes: bool) -> None:
    """Delete a project with its deployments, runs and variables."""
    confirm(f"Delete the project {name} with its deployments, runs and variables?", yes)
    context.client.delete_project(name)
    context.output.item({"name": name}, f"{name} is deleted")
