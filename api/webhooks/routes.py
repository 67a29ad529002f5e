"""Webhook endpoint of git hosts: a push triggers an early poll of the repository.

A hint only: polling also finds the changes of a lost delivery. Mounted by `api.app`.
"""

import time
from contextlib import suppress

from aiohttp import web

from api import errors, tenant_limits
from api.http import expect_continue, responses
from api.http.operation import PublicOperation, item_response
from api.http.query import Parameter
from api.routing.recorded import make_change
from api.services import SERVICES, ApiServices
from api.store.index.deployments.deployments import DeploymentRow
from api.store.index.projects import ProjectRow
from api.webhooks import delivery, outcome, replay_protection, schema, signature
from api.webhooks.body import MAX_PARSED_BYTES, DeliveryReader
from api.webhooks.delivery import FORM, JSON, Delivery
from api.webhooks.replay_protection import ProcessedDeliveries
from api.webhooks.secret import WebhookSecrets
from crds.kinds import DEPLOYMENT, PROJECT, Kind
from crds.names import ANNOTATION_CLOSED, ANNOTATION_PUSHED_AT, MAX_NAME, id_of
from crds.times import format_time
from kube import errors as kube_errors

ROUTE_NAME = "git-hook"
DELIVERIES_PER_MINUTE = 120
"""Effective deliveries per project and minute; polling covers any beyond that."""
MAX_PREVIEWS = 1000
_READER = web.AppKey("hook_reader", DeliveryReader)
_SECRETS = web.AppKey("hook_secrets", WebhookSecrets)


async def deliver(request: web.Request) -> web.StreamResponse:
    """Accept a delivery, authorized by its signature or token instead of a key."""
    services = request.app[SERVICES]
    if request.content_type not in (JSON, FORM):
        raise errors.HttpApiError(415, f"send the delivery as {JSON} or {FORM}")
    proof = signature.parse_proof(request.headers)
    if proof is None:
        raise _not_found()
    project = await _project(services, request.match_info["name"])
    secret = await request.app[_SECRETS].of(project.as_object()) if project else ""
    # Read the body for an unknown project too: both cases must be indistinguishable.
    body = await request.app[_READER].read(request, secret)
    if not signature.verify(proof, secret, body.hmac) or project is None:
        raise _not_found()
    try:
        payload = delivery.parse_payload(body.raw, request.content_type) if body.raw is not None else None
    except ValueError as error:
        raise errors.invalid(f"the delivery cannot be parsed: {error}") from error
    parsed = delivery.parse_delivery(request.headers, payload)
    found = project.as_object()
    decision = outcome.decide(found.git, parsed, found.reported_repositories)
    if decision.effect == "none":
        return _respond(decision.effect, decision.reason, 200 if parsed.kind == "ping" else 202)
    now = services.now()
    processed, keys = (
        ProcessedDeliveries(services.store.idempotency, project.uid),
        replay_protection.delivery_keys(delivery.identifiers(request.headers), proof, body),
    )
    if await processed.contain_any(keys, now):
        return _respond("none", "this delivery was already processed")
    allowance = await services.limiter.count(f"hook:{project.uid}", DELIVERIES_PER_MINUTE)
    if allowance.exceeded:
        services.metrics.limit_reached(tenant_limits.DELIVERIES, project.name)
        raise allowance.error(time.time())
    if decision.effect == "look":
        await _annotate(request, parsed, PROJECT, project, ANNOTATION_PUSHED_AT, format_time(now))
    else:
        await _close(request, parsed, project)
    await processed.add(keys, now)
    return _respond(decision.effect, decision.reason)


async def _project(services: ApiServices, name: str) -> ProjectRow | None:
    return await services.store.projects.get(name) if len(name) <= MAX_NAME else None


async def _close(request: web.Request, closed: Delivery, project: ProjectRow) -> None:
    """Annotate the previews of a pull request; the controller deletes them with their images."""
    deployments = request.app[SERVICES].store.deployments
    for row in (await deployments.page(project.name, 0, MAX_PREVIEWS)).items:
        if row.preview and (row.spec.get("preview") or {}).get("pullRequest") == closed.number:
            value = f"pull request {closed.number}"
            await _annotate(request, closed, DEPLOYMENT, row, ANNOTATION_CLOSED, value)


async def _annotate(
    request: web.Request,
    parsed: Delivery,
    kind: Kind,
    row: ProjectRow | DeploymentRow,
    annotation: str,
    value: str,
) -> None:
    """Write and record an annotation, which GitOps tools do not revert."""
    services = request.app[SERVICES]
    metadata = {"uid": row.uid, "annotations": {annotation: value}}

    async def patch() -> None:
        with suppress(kube_errors.KubeNotFound, kube_errors.KubeConflict):
            await services.kube.at(row.object_namespace).patch(kind, row.name, {"metadata": metadata})

    project, target = (row.name, row.name) if isinstance(row, ProjectRow) else (row.project, id_of(row.name))
    await make_change(request, services, f"webhook:{parsed.host}", patch, project, target)


def _respond(effect: outcome.Effect, reason: str, status: int = 202) -> web.Response:
    return responses.item({"effect": effect, "reason": reason}, status)


def _not_found() -> errors.HttpApiError:
    return errors.not_found(
        "no webhook matches this delivery: check the name of the project, its spec.webhook.secretRef, "
        "the key `token` of that Secret, and the secret at the git host"
    )


def mount(app: web.Application) -> None:
    """Add the route, which requires no key."""
    app[_READER] = DeliveryReader()
    app[_SECRETS] = WebhookSecrets(app[SERVICES].kube, time.monotonic, app[SERVICES].config.secret_use)
    app.router.add_route(
        "POST", PUBLIC_OPERATIONS[0].path, deliver, name=ROUTE_NAME, expect_handler=expect_continue.defer
    )


def _header(name: str, description: str, example: str) -> Parameter:
    return Parameter(name, {"type": "string"}, description=description, example=example)


PUBLIC_OPERATIONS = (
    PublicOperation(
        "POST",
        "/v1/hooks/git/{name}",
        summary="Take a webhook of a git host",
        description=(
            "Takes pushes of GitHub, GitLab, Gitea and Forgejo, as JSON or as a form with the field "
            "`payload`. The delivery must be signed (HMAC-SHA256) with the key `token` of the Secret that "
            "the project's `webhook.secret_ref` names, or carry it as its token; any other gets a 404. "
            "A push to the branch or tag that the project follows triggers an early poll of the "
            "repository; closing a pull request removes its previews. A repeated delivery has no effect. "
            f"If the body is larger than {MAX_PARSED_BYTES >> 20} MiB, only its signature is checked."
        ),
        headers=(
            _header("X-GitHub-Event", "The event of GitHub, such as push or ping.", "push"),
            _header("X-Hub-Signature-256", "The signature of GitHub.", schema.SIGNATURE_EXAMPLE),
            _header(
                "X-Gitea-Signature",
                "The signature of Gitea.",
                schema.SIGNATURE_EXAMPLE.removeprefix("sha256="),
            ),
            Parameter(
                "X-Gitlab-Token", {"type": "string"}, description="The token of GitLab: the secret itself."
            ),
        ),
        body={"type": "object"},
        example=schema.DELIVERY_EXAMPLE,
        responses=(
            item_response(schema.OUTCOME, schema.ACCEPTED_EXAMPLE, 202, "Accepted; `effect` is the outcome."),
            item_response(schema.OUTCOME, schema.PING_EXAMPLE, 200, "A ping: the webhook works."),
        ),
        error_statuses=(404, 408, 413, 415),
    ),
)
