"""What follows from a delivery for a Project. Pure. Called by `api.webhooks.routes`."""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

from api.webhooks.delivery import Delivery
from crds.objects import Json

Effect = Literal["look", "close", "none"]


@dataclass(frozen=True)
class Verdict:
    """`look`: the source is looked at now; `close`: the previews of a pull request go; `none`, and why."""

    effect: Effect
    reason: str


def judge(git: Json | None, delivery: Delivery) -> Verdict:
    """What a delivery does to a Project that follows `git` (its spec.source.git)."""
    if delivery.kind == "ping":
        return Verdict("none", "a ping; the webhook works")
    if git is None:
        return Verdict("none", "the project follows no repository")
    if delivery.repository is not None and not _same(str(git["url"]), delivery.repository):
        return Verdict("none", f"the project follows another repository than {delivery.repository[:200]}")
    if delivery.kind == "closed":
        return Verdict("close", f"pull request {delivery.number} is closed; its previews are removed")
    if delivery.kind != "push":
        return Verdict("none", f"nothing follows from {delivery.event[:100] or 'such an event'}")
    if git.get("suspend"):
        return Verdict("none", "spec.source.git.suspend is true")
    ref = git.get("ref") or {}
    if ref.get("commit"):
        return Verdict("none", "the project stays at the commit of spec.source.git.ref")
    wanted = _followed(ref, delivery)
    if wanted is not None and delivery.ref is not None and delivery.ref != wanted:
        return Verdict("none", f"the project follows {wanted[:300]}")
    return Verdict("look", "the repository is looked at now")


def _followed(ref: Json, delivery: Delivery) -> str | None:
    if ref.get("tag"):
        return f"refs/tags/{ref['tag']}"
    branch = ref.get("branch") or delivery.default_branch
    return f"refs/heads/{branch}" if branch else None


def _same(url: str, repository: str) -> bool:
    """Whether an address may be that of owner/name. Hosts have several names, so theirs is not compared."""
    path = unquote(urlsplit(url).path).strip("/").removesuffix(".git").lower()
    name = repository.strip("/").lower()
    return path == name or path.endswith("/" + name)
