"""The action `run`: run a crew, print its events, and fail if the run fails.

Started by action.yml. Inputs arrive as CREWYARD_INPUT_* variables, everything else through the variables and
files of the GitHub Actions runner.
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
from actions.workflow.client.api import ApiClient
from actions.workflow.client.credential import credential
from actions.workflow.client.sse import as_object, parse_object
from actions.workflow.client.transport import CONNECTION_ERRORS, fetch_token
from actions.workflow.console import Console
from actions.workflow.errors import ErrorResponse, StepCanceled, StepFailed
from actions.workflow.inputs import Inputs

# Upper bound of all installations; most have a lower limit and report it.
MAX_INPUT_BYTES = 2 * 1024 * 1024
# Longest run timeout of any installation; before the start a run may wait in the queue.
_MAX_RUN_SECONDS = 7 * 24 * 3600
_MAX_QUEUE_SECONDS = 6 * 3600
# GitHub kills a canceled step after ten seconds.
_CANCEL_SECONDS = 8.0
# A canceled crew has ten seconds to end; then its events and artifacts are stored.
_END_SECONDS = 30.0
_FINAL_STATUSES = ("succeeded", "failed", "canceled")


@dataclass(frozen=True)
class RunInputs:
    """The validated inputs of the action. `body` is the body of POST /v1/runs."""

    body: Mapping[str, Any]
    seconds: int
    directory: Path | None
    overwrite: bool


@dataclass
class RunProgress:
    """State of the run, filled in while the step runs."""

    api: ApiClient
    body: Mapping[str, Any]
    key: str
    id: str | None = None
    status: str = "unknown"
    output: Any = None
    error: Mapping[str, Any] = field(default_factory=dict)
    duration_ms: Any = None
    tokens: event_lines.TokenUsage = field(default_factory=event_lines.TokenUsage)
    files: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        """The API path of the run."""
        return f"/v1/runs/{quote(self.id or '', safe='')}"

    def observe(self, current: Mapping[str, Any]) -> None:
        """Store status and outcome of the run as the API shows it."""
        self.status, self.output = str(current["status"]), current.get("output")
        self.error, self.duration_ms = as_object(current.get("error")), current.get("duration_ms")


def read_input(text: str) -> dict[str, Any]:
    """Return the crew's input, an object. Raises StepFailed that locates a JSON error."""

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    try:
        value = json.loads(text or "{}", parse_constant=constant)
        size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    except json.JSONDecodeError as error:
        raise StepFailed(
            f"The input `input` is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    except (ValueError, RecursionError) as error:
        raise StepFailed(f"The input `input` is not JSON: {error}.") from None
    if not isinstance(value, dict):
        raise StepFailed('The input `input` must be a JSON object, such as {"topic": "tides"}.')
    if size > MAX_INPUT_BYTES:
        raise StepFailed(
            f"The input `input` has {size} bytes; the limit is {MAX_INPUT_BYTES}. "
            "Pass a URL that the crew can fetch the data from."
        )
    return value


def read_inputs(inputs: Inputs, environment: Mapping[str, str]) -> RunInputs:
    """Return the validated inputs; create the directory for artifacts. Raises StepFailed that names one."""
    project, deployment = inputs.text("project"), inputs.text("deployment")
    if bool(project) == bool(deployment):
        raise StepFailed("Give one of the inputs project (runs its active deployment) and deployment.")
    body: dict[str, Any] = {
        "deployment": inputs.project() if project else inputs.deployment(),
        "input": read_input(inputs.text("input")),
    }
    seconds = _MAX_RUN_SECONDS
    if inputs.text("timeout"):
        seconds = inputs.seconds("timeout", "1h")
        body["timeout"] = inputs.text("timeout")
    directory = inputs.text("artifacts-directory")
    target = Path(environment.get("GITHUB_WORKSPACE") or ".", directory) if directory else None
    overwrite = inputs.flag("artifacts-overwrite", False)
    if target is not None:
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StepFailed(f"The input artifacts-directory cannot be a directory: {error}.") from None
    return RunInputs(body, seconds + _MAX_QUEUE_SECONDS, target, overwrite)


def follow(run: RunProgress, console: Console) -> None:
    """Print the events up to the last one, and store the outcome in `run`."""
    for message in run.api.follow(f"{run.path}/events"):
        data = parse_object(message.data)
        if message.event == "usage":
            run.tokens.add(data)
        line = event_lines.line(message.event, data)
        if line is not None:
            console.log(line)
        if message.event == "input.requested":
            # No one answers in a workflow: fail now, not after a day.
            prompt = event_lines.short(data.get("prompt"))
            raise StepFailed(
                f"The run {run.id} asks a person {prompt!r}, and no one answers in a workflow. Pass the "
                "answer in the input, or start the run elsewhere. The run is canceled.",
                title="InputRequired",
            )
        if message.event in event_lines.FINAL_EVENTS:
            break
    for attempt in range(1, 31):
        run.observe(run.api.get(run.path)["data"])
        if run.status in _FINAL_STATUSES:
            return
        time.sleep(min(run.api.seconds_left(), 0.1 * attempt))
    raise StepFailed(f"The events of {run.id} have ended, but it is still {run.status}.")


def collect(run: RunProgress, console: Console, directory: Path, overwrite: bool) -> None:
    """Download the artifacts. Raises StepFailed with the errors after trying all of them."""
    downloads, failed = artifacts.DownloadDirectory(directory, overwrite), list[str]()
    for item in artifacts.list_artifacts(run.api, run.id or ""):
        name = str(item.get("name"))
        try:
            target = artifacts.fetch(run.api, run.id or "", item, downloads)
        except StepFailed as error:
            failed.append(error.message)
        except (ErrorResponse, OSError) as error:
            failed.append(f"The artifact {name[:200]!r} could not be downloaded: {error}.")
        else:
            run.files.append(name)
            console.log(f"downloaded {target} ({item.get('size')} bytes)")
    if failed:
        raise StepFailed("\n".join(failed[:20]), title="Artifacts")


def cancel(run: RunProgress, console: Console) -> bool:
    """Request cancellation of the run, within seconds, since GitHub is about to kill the step."""
    end = time.monotonic() + _CANCEL_SECONDS
    while True:
        seconds_left = end - time.monotonic()
        try:
            if run.id is None:
                # The signal came before the response: repeat the idempotent request to get the run's id.
                run.id = str(run.api.post_once("/v1/runs", run.body, seconds_left / 2, run.key)["id"])
            run.status = str(run.api.post_once(f"{run.path}/cancel", {}, seconds_left / 2)["status"])
        except (ErrorResponse, StepFailed, *CONNECTION_ERRORS) as error:
            retry = not isinstance(error, StepFailed) and (
                not isinstance(error, ErrorResponse) or error.retryable
            )
            if retry and seconds_left > 2.0:
                time.sleep(0.5)
                continue
            console.log(f"the run {run.id or ''} could not be canceled: {error}")
            return False
        console.log(f"requested cancellation of the run {run.id}")
        return True


def await_end(run: RunProgress) -> None:
    """Wait some seconds for the end of a canceled run, so that outputs and summary have its last status."""
    end = time.monotonic() + _END_SECONDS
    while run.status not in _FINAL_STATUSES and (seconds_left := end - time.monotonic()) > 1.0:
        try:
            run.observe(run.api.get_once(f"{run.path}?wait={int(seconds_left)}", seconds_left + 1.0))
        except (ErrorResponse, StepFailed, *CONNECTION_ERRORS):
            return
        time.sleep(0.2)


def write_report(run: RunProgress) -> None:
    """Write outputs and job summary, for every outcome."""
    if run.id is None:
        return
    output = "" if run.status != "succeeded" else json.dumps(run.output, ensure_ascii=False)
    outputs.write_outputs(os.environ, {"run-id": run.id, "status": run.status, "output": output})
    rows = [
        ("Run", outputs.link(run.id, f"{run.api.url}/console/#/runs/{quote(run.id, safe='')}")),
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


def run_action(console: Console) -> None:
    """Run the step."""
    inputs = Inputs(os.environ)
    caller = credential(inputs, os.environ, fetch_token, console.mask)
    request = read_inputs(inputs, os.environ)
    if inputs.is_unencrypted():
        console.command("warning", "api-url is http, so key and input are sent unencrypted; use https.")
    api = ApiClient(inputs.api_url(), caller, console, time.monotonic() + request.seconds)
    run = RunProgress(api, request.body, f"action-{secrets.token_hex(16)}")
    try:
        _run_and_collect(run, console, request)
    finally:
        write_report(run)


def _run_and_collect(run: RunProgress, console: Console, request: RunInputs) -> None:
    try:
        created = run.api.post("/v1/runs", run.body, run.key)
        run.id, run.status = str(created["id"]), str(created["status"])
        console.log(f"run {run.id} of {created.get('deployment_id')} is {run.status}")
        follow(run, console)
    except StepCanceled as canceled:
        canceled.acknowledge()
        cancel(run, console)
        raise
    except (StepFailed, ErrorResponse):
        # Timeout or lost connection: cancel the run, since the step no longer follows it.
        if run.id is not None and cancel(run, console):
            await_end(run)
        raise
    if request.directory is not None:
        try:
            collect(run, console, request.directory, request.overwrite)
        except (StepFailed, ErrorResponse) as failed:
            if run.status == "succeeded":
                raise
            console.log(f"not all artifacts were downloaded: {failed}")
    if run.status == "failed":
        message = str(run.error.get("message") or "no message")
        raise StepFailed(
            f"{message}\nThe run {run.id} failed.", title=str(run.error.get("reason") or "Failed")
        )
    if run.status == "canceled":
        raise StepFailed(f"The run {run.id} was canceled.", title="Canceled")
    console.log(f"{run.id} succeeded")


if __name__ == "__main__":
    sys.exit(step.run_step(run_action))
