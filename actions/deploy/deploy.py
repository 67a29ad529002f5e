"""The action `deploy`: the checkout becomes a deployment, and the job waits for it.

Started by action.yml. Inputs come as CREWYARD_INPUT_* variables, the rest from
the variables and files of the runner.
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
from actions.workflow.client.api import Api
from actions.workflow.client.credential import credential
from actions.workflow.client.sse import parsed, whole
from actions.workflow.client.transport import fetch_token
from actions.workflow.console import Console
from actions.workflow.deployment import Deployment, failure, told
from actions.workflow.errors import Failed, Refusal, Stopped
from actions.workflow.inputs import Inputs
from actions.workflow.source import git
from actions.workflow.source.commit import Commit, clean_message, read_commit
from actions.workflow.source.exclude_patterns import Patterns
from actions.workflow.source.pack import Packed, pack, select
from actions.workflow.source.upload_progress import Progress, amount

TIMEOUT = "45m"
_STATUSES = ("active", "superseded", "failed")
_IDENTITY = (
    "GITHUB_REPOSITORY",
    "GITHUB_SHA",
    "GITHUB_RUN_ID",
    "GITHUB_RUN_ATTEMPT",
    "GITHUB_JOB",
)


@dataclass(frozen=True)
class Wish:
    """The inputs, checked."""

    project: str
    directory: Path
    message: str
    excludes: Patterns
    preview: bool
    wait: bool
    seconds: int


def read_wish(inputs: Inputs, environment: Mapping[str, str]) -> Wish:
    """The inputs. Raises Failed naming the one that is wrong."""
    directory = Path(environment.get("GITHUB_WORKSPACE") or ".", inputs.text("working-directory", "."))
    if not directory.is_dir():
        raise Failed(f"The input working-directory names no directory: {directory}.")
    return Wish(
        inputs.project(),
        directory.resolve(),
        clean_message(inputs.text("message")),
        Patterns(inputs.lines("exclude")),
        inputs.flag("preview", False),
        inputs.flag("wait", True),
        inputs.seconds("timeout", TIMEOUT),
    )


def idempotency_key(environment: Mapping[str, str], body: Mapping[str, Any]) -> str:
    """The same for every try of one request of one job's attempt, another one for anything else."""
    identity = [environment.get(name, "") for name in _IDENTITY]
    if not environment.get("GITHUB_RUN_ID"):
        identity.append(secrets.token_hex(16))
    text = json.dumps([*identity, body], sort_keys=True)
    return f"action-{hashlib.sha256(text.encode()).hexdigest()}"


def followed(api: Api, project: str) -> Mapping[str, Any] | None:
    """The repository that the project follows, None where it follows none or the key may not see it."""
    try:
        found = api.get(f"/v1/projects/{quote(project, safe='')}")["data"]
    except Refusal as refusal:
        if refusal.status == 404:
            raise Failed(
                f"There is no project {project}, or the key may not see it. Create it first "
                "(POST /v1/projects, or kubectl apply), and bind the key to it."
            ) from None
        if refusal.status == 403:
            return None
        raise
    git_source = whole(whole(whole(found).get("source")).get("git"))
    return git_source or None


def send(api: Api, console: Console, wish: Wish) -> tuple[str, Packed]:
    """Packs and uploads the source; gives its build_context_url."""
    source = select(wish.directory, git.tracked(wish.directory), wish.excludes)
    for note in source.notes:
        console.say(note)
    with tempfile.TemporaryFile(dir=os.environ.get("RUNNER_TEMP") or None) as archive:
        packed = pack(source, archive)
        console.say(
            f"packed {packed.entries} files, {amount(packed.unpacked)} into {amount(packed.size)}, "
            f"sha256 {packed.sha256}"
        )
        asked = {"project": wish.project, "size": packed.size, "sha256": packed.sha256}
        try:
            ticket = api.post("/v1/uploads", asked)
        except Refusal as refusal:
            if refusal.status != 413:
                raise
            raise Failed(
                f"The archive is larger than the limit context_bytes: {refusal.message} (input exclude).",
                title="ContextTooLarge",
            ) from None
        headers = {**ticket["headers"], "Content-Length": str(packed.size)}
        api.put(ticket["upload_url"], headers, lambda: Progress(archive, packed.size, console.say))
    console.say(f"uploaded {amount(packed.size)}")
    return str(ticket["build_context_url"]), packed


def create(api: Api, console: Console, wish: Wish, commit: Commit) -> Deployment:
    """Makes the deployment, from the commit where the project follows a repository, else from an upload."""
    body: dict[str, Any] = {"project": wish.project, "message": wish.message or commit.message}
    rows = [("Project", f"`{wish.project}`")]
    source = followed(api, wish.project)
    if source is not None:
        if commit.sha is None:
            raise Failed(f"The project {wish.project} follows a repository, but there is no commit to name.")
        console.say(f"it follows {source.get('url')}: the commit {commit.sha} is named, without an upload")
        body["source"] = {"git": {"commit": commit.sha}}
        directory = str(source.get("path") or "")
    else:
        body["build_context_url"], packed = send(api, console, wish)
        directory = git.text(wish.directory, "rev-parse", "--show-prefix") or ""
        rows.append(
            ("Source", f"{packed.entries} files, {amount(packed.size)}, sha256 `{packed.sha256[:12]}`")
        )
    if commit.sha:
        body["git_sha"] = commit.sha
        rows.append(("Commit", f"`{commit.sha[:12]}` {outputs.cell(str(body['message']))}"))
    if wish.preview:
        body["preview"] = {} if commit.pull_request is None else {"pull_request": commit.pull_request}
        rows.append(("Preview", f"pull request {commit.pull_request}" if commit.pull_request else "yes"))
    try:
        made = api.post("/v1/deployments", body, idempotency_key(os.environ, body))
    except Refusal as refusal:
        if refusal.status == 409 and source is None:
            raise Failed(
                f"{refusal.message}. This action names the commit by itself where its key has the scope read "
                f"for {wish.project}; to deploy other code than the commit, call the API with override."
            ) from None
        raise
    deployment = str(made["id"])
    console.say(f"deployment {deployment} is {made['status']}")
    url = f"{api.url}/v1/deployments/{quote(deployment, safe='')}"
    return Deployment(deployment, str(made["status"]), url, directory, rows)


def wait(api: Api, console: Console, deployment: Deployment) -> None:
    """Shows the build log and waits until the deployment's status is a last one."""
    path = f"/v1/deployments/{quote(deployment.id, safe='')}"
    with console.group(f"Build log of {deployment.id}"):
        for message in api.follow(f"{path}/logs"):
            if message.event == "log":
                console.say(str(parsed(message.data).get("message", "")))
            elif message.event == "end":
                break
    # The stream has ended, so the status is a last one now; or very soon, where another replica answers.
    for attempt in range(1, 31):
        found = api.get(path)["data"]
        deployment.status, deployment.activated = str(found["status"]), bool(found.get("activated_at"))
        deployment.error = whole(found.get("error"))
        if deployment.status in _STATUSES:
            return
        time.sleep(min(api.left(), 0.1 * attempt))
    raise Failed(f"The build log of {deployment.id} has ended, but it is still {deployment.status}.")


def act(console: Console) -> None:
    """The whole step."""
    inputs = Inputs(os.environ)
    who = credential(inputs, os.environ, fetch_token, console.mask)
    wish = read_wish(inputs, os.environ)
    if inputs.plain_text():
        console.command("warning", "api-url is http, so key and source travel unencrypted; use https.")
    api = Api(inputs.api_url(), who, console, time.monotonic() + wish.seconds)
    deployment = create(api, console, wish, read_commit(wish.directory, os.environ))
    try:
        if wish.wait:
            wait(api, console, deployment)
    except Failed as failed:
        raise Failed(
            f"{failed.message} The build of {deployment.id} goes on; it is {deployment.status} so far.",
            title=failed.title,
        ) from None
    except Stopped as stopped:
        stopped.heard()
        console.say(f"the build of {deployment.id} goes on")
        raise
    finally:
        told(os.environ, deployment)
    if deployment.status == "failed":
        top = git.text(wish.directory, "rev-parse", "--show-toplevel")
        raise failure(deployment, Path(top) if top else wish.directory)
    console.say(f"{deployment.id} is {deployment.status}: {deployment.url}")
    if deployment.status == "superseded" and not wish.preview and not deployment.activated:
        console.command("notice", f"{deployment.id} is built, but another deployment is the active one.")


if __name__ == "__main__":
    sys.exit(step.perform(act))
