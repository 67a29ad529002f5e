"""The action `run`: runs a crew, shows what it does, and ends as it ends.

Started by action.yml. Inputs come as CREWYARD_INPUT_* variables, the rest from
the variables and files of the runner.
"""

import json
import os
import secrets
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from actions.workflow import artifacts, event_lines, outputs, step
from actions.workflow.client.api import Api
from actions.workflow.client.credential import credential
from actions.workflow.client.sse import parsed, whole
from actions.workflow.client.transport import TROUBLE, fetch_token
from actions.workflow.console import Console
from actions.workflow.errors import Failed, Refusal, Stopped
from actions.workflow.inputs import Inputs

# What any installation takes; most take less, and say so.
INPUT_BYTES = 2 * 1024 * 1024
# No installation lets a run take longer once it has started; before that it may wait for its turn.
_LONGEST_RUN = 7 * 24 * 3600
_WAITING_SECONDS = 6 * 3600
# GitHub gives a canceled step ten seconds in all.
_CANCEL_SECONDS = 8.0
_ENDED = ("succeeded", "failed", "canceled")


@dataclass(frozen=True)
class Wish:
    """The inputs, checked. `body` is that of POST /v1/runs."""

    body: Mapping[str, Any]
    seconds: int
    directory: Path | None


@dataclass
class Run:
    """What is known of the run; grows while the step goes on."""

    api: Api
    body: Mapping[str, Any]
    key: str
    id: str | None = None
    status: str = "unknown"
    output: Any = None
    error: Mapping[str, Any] = field(default_factory=dict)
    duration_ms: Any = None
    tokens: event_lines.Tokens = field(default_factory=event_lines.Tokens)
    files: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Where the API has it."""
        return f"/v1/runs/{quote(self.id or '', safe='')}"


def read_input(text: str) -> dict[str, Any]:
    """The crew's input, an object. Raises Failed saying where it is wrong."""

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is no JSON")

    try:
        value = json.loads(text or "{}", parse_constant=constant)
        size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    except json.JSONDecodeError as error:
        raise Failed(
            f"The input `input` is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    except (ValueError, RecursionError) as error:
        raise Failed(f"The input `input` is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise Failed('The input `input` must be a JSON object, such as {"topic": "tides"}.')
    if size > INPUT_BYTES:
        raise Failed(
            f"The input `input` has {size} bytes, more than the limit {INPUT_BYTES}; "
            "give the crew an address to fetch it from."
        )
    return value


def read_wish(inputs: Inputs, environment: Mapping[str, str]) -> Wish:
    """The inputs. Raises Failed naming the one that is wrong."""
    project, deployment = inputs.text("project"), inputs.text("deployment")
    if bool(project) == bool(deployment):
        raise Failed("Give one of the inputs project (its active deployment runs) and deployment.")
    body: dict[str, Any] = {
        "deployment": inputs.project() if project else inputs.deployment(),
        "input": read_input(inputs.text("input")),
    }
    seconds = _LONGEST_RUN
    if inputs.text("timeout"):
        seconds = inputs.seconds("timeout", "1h")
        body["timeout"] = inputs.text("timeout")
    directory = inputs.text("artifacts-directory")
    place = Path(environment.get("GITHUB_WORKSPACE") or ".", directory) if directory else None
    return Wish(body, seconds + _WAITING_SECONDS, place)


def follow(run: Run, console: Console) -> None:
    """Shows the events to the last one, and takes over how it ended."""
    for message in run.api.follow(f"{run.path}/events"):
        data = parsed(message.data)
        if message.event == "usage":
            run.tokens.add(data)
        line = event_lines.line(message.event, data)
        if line is not None:
            console.say(line)
        if message.event in event_lines.LAST:
            break
    for attempt in range(1, 31):
        found = run.api.get(run.path)["data"]
        run.status, run.output = str(found["status"]), found.get("output")
        run.error, run.duration_ms = whole(found.get("error")), found.get("duration_ms")
        if run.status in _ENDED:
            return
        time.sleep(min(run.api.left(), 0.1 * attempt))
    raise Failed(f"The events of {run.id} have ended, but it is still {run.status}.")


def collect(run: Run, console: Console, directory: Path) -> None:
    """Downloads the artifacts. Raises Failed for the first that cannot be, after trying all."""
    shelf, failed = artifacts.Shelf(directory), list[str]()
    for item in artifacts.listed(run.api, run.id or ""):
        name = str(item.get("name"))
        try:
            place = artifacts.fetch(run.api, run.id or "", item, shelf)
        except Failed as error:
            failed.append(error.message)
        except (Refusal, OSError) as error:
            failed.append(f"The artifact {name[:200]!r} could not be downloaded: {error}.")
        else:
            run.files.append(name)
            console.say(f"downloaded {place} ({item.get('size')} bytes)")
    if failed:
        raise Failed("\n".join(failed[:20]), title="Artifacts")


def cancel(run: Run, console: Console) -> None:
    """Asks for the run's end, within seconds, since the step is being ended itself."""
    end = time.monotonic() + _CANCEL_SECONDS
    while True:
        left = end - time.monotonic()
        try:
            if run.id is None:
                # The answer did not arrive before the signal: the same request again says which run it is.
                run.id = str(run.api.once("/v1/runs", run.body, left / 2, run.key)["id"])
            run.status = str(run.api.once(f"{run.path}/cancel", {}, left / 2)["status"])
        except (Refusal, Failed, *TROUBLE) as error:
            again = not isinstance(error, Failed) and (not isinstance(error, Refusal) or error.passing)
            if again and left > 2.0:
                time.sleep(0.5)
                continue
            console.say(f"the run {run.id or ''} could not be canceled: {error}")
        else:
            console.say(f"the run {run.id} is asked to end")
        return


def told(run: Run) -> None:
    """Outputs and summary, whatever the end."""
    if run.id is None:
        return
    output = "" if run.status != "succeeded" else json.dumps(run.output, ensure_ascii=False)
    outputs.write_outputs(os.environ, {"run-id": run.id, "status": run.status, "output": output})
    rows = [
        ("Run", outputs.link(run.id, f"{run.api.url}{run.path}")),
        ("Of", f"`{run.body['deployment']}`"),
        ("Status", f"**{outputs.cell(run.status)}**"),
    ]
    if run.duration_ms is not None:
        rows.append(("Duration", event_lines.duration(run.duration_ms)))
    if run.error:
        rows.append(("Error", outputs.cell(f"{run.error.get('reason')}: {run.error.get('message')}")))
    if output:
        rows.append(("Output", outputs.cell(output)))
    if run.tokens.text():
        rows.append(("Tokens", outputs.cell(run.tokens.text())))
    if run.files:
        rows.append(("Artifacts", outputs.cell(", ".join(run.files))))
    outputs.write_summary(os.environ, outputs.table(f"Crewyard run {run.id}", rows))


def act(console: Console) -> None:
    """The whole step."""
    inputs = Inputs(os.environ)
    who = credential(inputs, os.environ, fetch_token, console.mask)
    wish = read_wish(inputs, os.environ)
    if inputs.plain_text():
        console.command("warning", "api-url is http, so key and input travel unencrypted; use https.")
    api = Api(inputs.api_url(), who, console, time.monotonic() + wish.seconds)
    run = Run(api, wish.body, f"action-{secrets.token_hex(16)}")
    try:
        _whole_run(run, console, wish)
    finally:
        told(run)


def _whole_run(run: Run, console: Console, wish: Wish) -> None:
    try:
        made = run.api.post("/v1/runs", run.body, run.key)
        run.id, run.status = str(made["id"]), str(made["status"])
        console.say(f"run {run.id} of {made.get('deployment_id')} is {run.status}")
        follow(run, console)
    except Stopped as stopped:
        stopped.heard()
        cancel(run, console)
        raise
    except (Failed, Refusal):
        # Nobody follows it any more, whether it was too slow or the connection is gone.
        if run.id is not None:
            cancel(run, console)
        raise
    if wish.directory is not None:
        try:
            collect(run, console, wish.directory)
        except (Failed, Refusal) as failed:
            if run.status == "succeeded":
                raise
            console.say(f"not all artifacts were downloaded: {failed}")
    if run.status == "failed":
        why = str(run.error.get("message") or "no message")
        raise Failed(f"{why}\nThe run {run.id} failed.", title=str(run.error.get("reason") or "Failed"))
    if run.status == "canceled":
        raise Failed(f"The run {run.id} was canceled.", title="Canceled")
    console.say(f"{run.id} has succeeded")


if __name__ == "__main__":
    sys.exit(step.perform(act))
