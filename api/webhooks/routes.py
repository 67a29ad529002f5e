"""Webhooks of git hosts: a push brings the next look at a repository forward.

A hint and no more: polling is the truth, and finds what a lost delivery did not tell.
"""

import time

from aiohttp import web

from api import errors
from api.http import expect_continue, responses
from api.http.operation import Open, one
from api.http.query import Parameter
from api.openapi import examples, shapes
from api.services import SERVICES, Services
from api.store.index.projects import ProjectRow
from api.webhooks import delivery, outcome, replay_protection, signature
from api.webhooks.body import KEPT, Reader
from api.webhooks.delivery import FORM, JSON, Delivery
from api.webhooks.replay_protection import Memory
from api.webhooks.secret import Secrets
from crds.kinds import DEPLOYMENT, PROJECT, Kind
from crds.names import ANNOTATION_CLOSED, ANNOTATION_PUSHED_AT, MAX_NAME
from crds.objects import Project
from crds.times import format_time
from kube import errors as kube_errors

NAME = "git-hook"
PER_MINUTE = 120
"""Deliveries of one project that have an effect; more in a minute find nothing that polling would not."""
MOST_PREVIEWS = 1000
_READER = web.AppKey("hook_reader", Reader)
_SECRETS = web.AppKey("hook_secrets", Secrets)


async def deliver(request: web.Request) -> web.StreamResponse:
    """Takes a delivery. Its signature or token is the permission, so no key is asked for."""
    services = request.app[SERVICES]
    if request.content_type not in (JSON, FORM):
        raise errors.ApiError(415, f"send the delivery as {JSON} or {FORM}")
    proof = signature.shown(request.headers)
    if proof is None:
        raise _refused()
    project = await _project(services, request.match_info["name"])
    name = ((project.spec.get("webhook") or {}).get("secretRef") or {}).get("name") if project else None
    secret = await request.app[_SECRETS].of(str(name)) if name else ""
    # Read also where there is no such project, so that the two look alike.
    body = await request.app[_READER].read(request, secret)
    if not signature.fits(proof, secret, body.hmac) or project is None:
        raise _refused()
    try:
        said = delivery.content(body.raw, request.content_type) if body.raw is not None else None
    except ValueError as error:
        raise errors.invalid(f"the delivery cannot be read: {error}") from error
    found = delivery.read(request.headers, said)
    git = Project({"metadata": {}, "spec": project.spec}).git
    verdict = outcome.judge(git, found)
    if verdict.effect == "none":
        return _answer(verdict.effect, verdict.reason, 200 if found.kind == "ping" else 202)
    now = services.now()
    remembered, names = (
        Memory(services.store.idempotency, project.uid),
        replay_protection.names(delivery.identifiers(request.headers), proof, body),
    )
    if await remembered.knows(names, now):
        return _answer("none", "this delivery came before")
    allowance = await services.limiter.count(f"hook:{project.uid}", PER_MINUTE)
    if allowance.exceeded:
        raise allowance.refusal(time.time())
    if verdict.effect == "look":
        await _annotate(services, PROJECT, project.name, project.uid, ANNOTATION_PUSHED_AT, format_time(now))
    else:
        await _close(services, project, found)
    await remembered.keep(names, now)
    return _answer(verdict.effect, verdict.reason)


async def _project(services: Services, name: str) -> ProjectRow | None:
    return await services.store.projects.get(name) if len(name) <= MAX_NAME else None


async def _close(services: Services, project: ProjectRow, found: Delivery) -> None:
    """Marks the previews of a pull request; the controller removes them with their images."""
    rows = (await services.store.deployments.page(project.name, 0, MOST_PREVIEWS)).items
    for row in rows:
        if row.preview and (row.spec.get("preview") or {}).get("pullRequest") == found.number:
            value = f"pull request {found.number}"
            await _annotate(services, DEPLOYMENT, row.name, row.uid, ANNOTATION_CLOSED, value)


async def _annotate(services: Services, kind: Kind, name: str, uid: str, annotation: str, value: str) -> None:
    """Writes an annotation, which tools that keep objects in git leave alone."""
    try:
        await services.kube.patch(kind, name, {"metadata": {"uid": uid, "annotations": {annotation: value}}})
    except (kube_errors.NotFound, kube_errors.Conflict):
        return


def _answer(what: outcome.Effect, reason: str, status: int = 202) -> web.Response:
    return responses.one({"effect": what, "reason": reason}, status)


def _refused() -> errors.ApiError:
    return errors.not_found(
        "there is no webhook here that this delivery fits: check the project's name, its "
        "spec.webhook.secretRef, the key token of that Secret, and the secret at the git host"
    )


def mount(app: web.Application) -> None:
    """Adds the operation, which needs no key."""
    app[_READER] = Reader()
    app[_SECRETS] = Secrets(app[SERVICES].kube, time.monotonic)
    app.router.add_route("POST", OPEN[0].path, deliver, name=NAME, expect_handler=expect_continue.later)


def _header(name: str, description: str, example: str) -> Parameter:
    return Parameter(name, {"type": "string"}, description=description, example=example)


OPEN = (
    Open(
        "POST",
        "/v1/hooks/git/{name}",
        summary="Take a webhook of a git host",
        description=(
            "Takes pushes of GitHub, GitLab, Gitea and Forgejo, as JSON or as a form with the field "
            "`payload`. The delivery must be signed (HMAC-SHA256) with the key `token` of the Secret that "
            "the project's `webhook.secret_ref` names, or carry it as its token; anything else is a 404, "
            "whatever is wrong. A push to the branch or tag that the project follows brings the next look "
            "at the repository forward; a pull request that is closed removes its previews. A delivery "
            f"that came before has no effect. Of one larger than {KEPT >> 20} MiB only the signature is "
            "read."
        ),
        headers=(
            _header("X-GitHub-Event", "What GitHub delivers, such as push or ping.", "push"),
            _header("X-Hub-Signature-256", "GitHub's signature.", examples.HOOK_SIGNATURE),
            _header(
                "X-Gitea-Signature", "Gitea's signature.", examples.HOOK_SIGNATURE.removeprefix("sha256=")
            ),
            Parameter("X-Gitlab-Token", {"type": "string"}, description="GitLab's token: the secret itself."),
        ),
        body={"type": "object"},
        example=examples.HOOK,
        answers=(
            one(shapes.HOOK, examples.HOOK_TAKEN, 202, "It was taken; `effect` says what follows."),
            one(shapes.HOOK, examples.HOOK_PING, 200, "A ping: the webhook works."),
        ),
        refusals=(404, 408, 413, 415),
    ),
)
