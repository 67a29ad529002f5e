"""Outcome of a delivery for a Project. Pure. Called by `api.webhooks.routes`."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

from api.webhooks.delivery import Delivery
from crds.objects import Json

Effect = Literal["look", "close", "none"]


@dataclass(frozen=True)
class DeliveryOutcome:
    """Effect and reason. `look`: poll the source now; `close`: remove the previews of a pull request."""

    effect: Effect
    reason: str


def decide(git: Json | None, delivery: Delivery, reported: Collection[str] = ()) -> DeliveryOutcome:
    """Return the outcome of a delivery for a Project with this spec.source.git.

    `reported` has the repositories of spec.github and spec.commitStatus: a Project of uploads has previews of
    pull requests, but no source to compare with.
    """
    if delivery.kind == "ping":
        return DeliveryOutcome("none", "a ping; the webhook works")
    repository = delivery.repository
    if git is None:
        if delivery.kind != "closed":
            return DeliveryOutcome("none", "the project has no git source")
        if repository and reported and repository.lower() not in {name.lower() for name in reported}:
            return DeliveryOutcome(
                "none", f"spec.github and spec.commitStatus name no repository {repository[:200]}"
            )
    elif repository is not None and not _is_repository(str(git["url"]), repository):
        return DeliveryOutcome("none", f"the project does not follow the repository {repository[:200]}")
    if delivery.kind == "closed" or git is None:
        return DeliveryOutcome("close", f"pull request {delivery.number} is closed; its previews are removed")
    if delivery.kind != "push":
        return DeliveryOutcome("none", f"event {delivery.event[:100] or 'without a name'} ignored")
    if git.get("suspend"):
        return DeliveryOutcome("none", "spec.source.git.suspend is true")
    ref = git.get("ref") or {}
    if ref.get("commit"):
        return DeliveryOutcome("none", "spec.source.git.ref pins the project to a commit")
    followed = _followed_ref(ref, delivery)
    if followed is not None and delivery.ref is not None and delivery.ref != followed:
        return DeliveryOutcome("none", f"the project follows {followed[:300]}")
    return DeliveryOutcome("look", "the repository is polled now")


def _followed_ref(ref: Json, delivery: Delivery) -> str | None:
    if ref.get("tag"):
        return f"refs/tags/{ref['tag']}"
    branch = ref.get("branch") or delivery.default_branch
    return f"refs/heads/{branch}" if branch else None


def _is_repository(url: str, repository: str) -> bool:
    """Return whether a URL matches owner/name. Git hosts have several names, so the host is ignored."""
    path = unquote(urlsplit(url).path).strip("/").removesuffix(".git").lower()
    name = repository.strip("/").lower()
    return path == name or path.endswith("/" + name)
