"""The action `deploy`: deploy the checkout and wait for the build.

Started by action.yml. Inputs arrive as CREWYARD_INPUT_* variables, everything else through the variables and
files of the GitHub Actions runner.
"""

import hashlib
import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from actions.workflow import outputs, step
from actions.workflow.client.api import ApiClient
from actions.workflow.client.credential import credential
from actions.workflow.client.sse import as_object, parse_object
from actions.workflow.client.transport import fetch_token
from actions.workflow.console import Console
from actions.workflow.deployment import DeploymentProgress, failure, notice, write_report
from actions.workflow.errors import ErrorResponse, StepCanceled, StepFailed
from actions.workflow.inputs import Inputs
from actions.workflow.source import git
from actions.workflow.source.commit import CheckoutCommit, clean_message, read_commit
from actions.workflow.source.configured_exclude import configured_exclude
from actions.workflow.source.exclude_patterns import ExcludePatterns
from actions.workflow.source.pack import PackedSource, pack, select
from actions.workflow.source.upload_progress import UploadProgress, format_size

TIMEOUT = "45m"
_STATUSES = ("active", "superseded", "failed")
_ACTIVATION_ATTEMPTS = 18
"""Looks at a built deployment, in 15 s: a commit becomes active once the service has seen it as the head."""
_IDENTITY = (
    "GITHUB_REPOSITORY",
    "GITHUB_SHA",
    "GITHUB_RUN_ID",
    "GITHUB_RUN_ATTEMPT",
    "GITHUB_JOB",
)


@dataclass(frozen=True)
class DeployInputs:
    """The validated inputs of the action."""

    project: str
    directory: Path
    message: str
    excludes: ExcludePatterns
    preview: bool
    wait: bool
    seconds: int


def read_inputs(inputs: Inputs, environment: Mapping[str, str]) -> DeployInputs:
    """Return the validated inputs. Raises StepFailed that names an invalid one."""
    directory = Path(environment.get("GITHUB_WORKSPACE") or ".", inputs.text("working-directory", "."))
    if not directory.is_dir():
        raise StepFailed(f"The input working-directory is not a directory: {directory}.")
    return DeployInputs(
        inputs.project(),
        directory.resolve(),
        clean_message(inputs.text("message")),
        ExcludePatterns(inputs.lines("exclude")),
        inputs.flag("preview", False),
        inputs.flag("wait", True),
        inputs.seconds("timeout", TIMEOUT),
    )


def idempotency_key(environment: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """Return an idempotency key: equal for retries of one request in one job attempt, else different."""
    identity = [environment.get(name, "") for name in _IDENTITY]
    if not environment.get("GITHUB_RUN_ID"):
        identity.append(secrets.token_hex(16))
    text = json.dumps([*identity, body], sort_keys=True)
    return f"action-{hashlib.sha256(text.encode()).hexdigest()}"


def followed_repository(api: ApiClient, project: str) -> Mapping[str, Any] | None:
    """Return the repository that the project follows; None if there is none or the key cannot read it."""
    try:
        project_object = api.get(f"/v1/projects/{quote(project, safe='')}")["data"]
    except ErrorResponse as response:
        if response.status == 404:
            raise StepFailed(
                f"The project {project} does not exist, or the key cannot read it. Create it first "
                "(POST /v1/projects, or kubectl apply), and bind the key to it."
            ) from None
        if response.status == 403:
            return None
        raise
    git_source = as_object(as_object(as_object(project_object).get("source")).get("git"))
    return git_source or None


def upload_source(api: ApiClient, console: Console, request: DeployInputs) -> tuple[str, PackedSource]:
    """Pack and upload the source; return its build_context_url and the archive."""
    tracked = git.tracked_files(request.directory)
    configured = configured_exclude(request.directory, {entry.path for entry in tracked})
    source = select(request.directory, tracked, request.excludes, configured)
    for note in source.notes:
        console.log(note)
    with tempfile.TemporaryFile(dir=os.environ.get("RUNNER_TEMP") or None) as archive:
        packed = pack(source, archive)
        console.log(
            f"packed {packed.entries} files, {format_size(packed.unpacked)} into {format_size(packed.size)}, "
            f"sha256 {packed.sha256}"
        )
        body = {"project": request.project, "size": packed.size, "sha256": packed.sha256}
        try:
            upload = api.post("/v1/uploads", body)
        except ErrorResponse as response:
            if response.status != 413:
                raise
            raise StepFailed(
                f"The archive is larger than the limit context_bytes: {response.message} (input exclude).",
                title="ContextTooLarge",
            ) from None
        headers = {**upload["headers"], "Content-Length": str(packed.size)}
        api.put(upload["upload_url"], headers, lambda: UploadProgress(archive, packed.size, console.log))
    console.log(f"uploaded {format_size(packed.size)}")
    return str(upload["build_context_url"]), packed


def create(
    api: ApiClient, console: Console, request: DeployInputs, commit: CheckoutCommit
) -> DeploymentProgress:
    """Create the deployment: from the commit if the project follows a repository, else from an upload."""
    body: dict[str, Any] = {"project": request.project, "message": request.message or commit.message}
    rows = [("Project", f"`{request.project}`")]
    source = followed_repository(api, request.project)
    if source is not None:
        if commit.sha is None:
            raise StepFailed(
                f"The project {request.project} follows a repository, but the checkout has no commit."
            )
        console.log(
            f"the project follows {source.get('url')}: deploying the commit {commit.sha} without an upload"
        )
        body["source"] = {"git": {"commit": commit.sha}}
        directory = str(source.get("path") or "")
    else:
        body["build_context_url"], packed = upload_source(api, console, request)
        directory = git.text(request.directory, "rev-parse", "--show-prefix") or ""
        rows.append(
            ("Source", f"{packed.entries} files, {format_size(packed.size)}, sha256 `{packed.sha256[:12]}`")
        )
    if commit.sha:
        body["git_sha"] = commit.sha
        rows.append(("Commit", f"`{commit.sha[:12]}` {outputs.cell(str(body['message']))}"))
    if request.preview:
        body["preview"] = {} if commit.pull_request is None else {"pull_request": commit.pull_request}
        rows.append(("Preview", f"pull request {commit.pull_request}" if commit.pull_request else "yes"))
    try:
        created = api.post("/v1/deployments", body, idempotency_key(os.environ, body))
    except ErrorResponse as response:
        if response.status == 409 and source is None:
            raise StepFailed(
                f"{response.message}. Give the key the scope read for {request.project}: the action then "
                "deploys the commit. To deploy other code than the commit, call the API with override."
            ) from None
        raise
    deployment = str(created["id"])
    console.log(f"deployment {deployment} is {created['status']}")
    url = f"{api.url}/console/#/deployments/{quote(deployment, safe='')}"
    return DeploymentProgress(deployment, str(created["status"]), url, directory, rows)


def active_deployment(api: ApiClient, project: str) -> Mapping[str, Any] | None:
    """Return the active deployment of the project: empty without one, None if the key cannot read it."""
    try:
        active = api.get(f"/v1/projects/{quote(project, safe='')}")["data"].get("active_deployment_id")
        return as_object(api.get(f"/v1/deployments/{quote(active, safe='')}")["data"]) if active else {}
    except ErrorResponse as response:
        if response.status in (403, 404):
            return None
        raise


def wait(api: ApiClient, console: Console, deployment: DeploymentProgress, request: DeployInputs) -> None:
    """Print the build log and wait until the deployment's status is final."""
    path = f"/v1/deployments/{quote(deployment.id, safe='')}"
    with console.group(f"Build log of {deployment.id}"):
        for message in api.follow(f"{path}/logs"):
            if message.event == "log":
                console.log(str(parse_object(message.data).get("message", "")))
            elif message.event == "end":
                break
    # The stream has ended, so the status is final, or will be soon if another replica responds.
    for attempt in range(1, 31):
        deployment.observe(api.get(path)["data"])
        if deployment.status == "superseded" and not (request.preview or deployment.activated):
            deployment.active = active_deployment(api, request.project)
        if deployment.status in _STATUSES and (attempt >= _ACTIVATION_ATTEMPTS or not deployment.passed_over):
            return
        time.sleep(min(api.seconds_left(), 0.1 * attempt))
    raise StepFailed(f"The build log of {deployment.id} has ended, but it is still {deployment.status}.")


def run_action(console: Console) -> None:
    """Run the step."""
    inputs = Inputs(os.environ)
    caller = credential(inputs, os.environ, fetch_token, console.mask)
    request = read_inputs(inputs, os.environ)
    if inputs.is_unencrypted():
        console.command("warning", "api-url is http, so key and source are sent unencrypted; use https.")
    api = ApiClient(inputs.api_url(), caller, console, time.monotonic() + request.seconds)
    deployment = create(api, console, request, read_commit(request.directory, os.environ))
    try:
        if request.wait:
            wait(api, console, deployment, request)
    except StepFailed as failed:
        raise StepFailed(
            f"{failed.message} The build of {deployment.id} continues; its status is {deployment.status}.",
            title=failed.title,
        ) from None
    except StepCanceled as canceled:
        canceled.acknowledge()
        console.log(f"the build of {deployment.id} continues")
        raise
    finally:
        write_report(os.environ, deployment)
    if deployment.status == "failed" and deployment.error.get("reason") != "Superseded":
        top = git.text(request.directory, "rev-parse", "--show-toplevel")
        raise failure(deployment, Path(top) if top else request.directory)
    console.log(f"{deployment.id} is {deployment.status}: {deployment.url}")
    if not request.preview and (text := notice(deployment)):
        console.command("notice", text)


if __name__ == "__main__":
    sys.exit(step.run_step(run_action))
