"""Where a process can be cut: at each write that it sends, named by what it writes. Pure.

Called by `tests.campaign.cuts.passes`.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.campaign.proxy.call import ProxiedRequest

TELLING = (
    "claim", "result", "image", "buildPod", "lastOrder", "order", "activationSeen", "activeDeployment",
)  # fmt: skip
"""The fields of a status that tell one write of it from another; the rest comes along, or does not."""


@dataclass(frozen=True)
class KillPoint:
    """The `nth` write of that description by that process (`api`, `controller`) in a scenario."""

    process: str
    what: str
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.process}: {self.what}" + (f" ({self.nth}.)" if self.nth > 1 else "")


def describe(call: ProxiedRequest) -> str:
    """Describe what a request writes, independent of the object's name."""
    return " ".join(part for part in (call.verb, call.kind, _detail(call)) if part)


def _detail(call: ProxiedRequest) -> str:
    sent = call.sent
    if call.resource == "events":
        return str(sent.get("reason") or "")
    if call.verb == "create" and call.resource == "pods":
        labels = (sent.get("metadata") or {}).get("labels") or {}
        return f"of a {labels.get('app.kubernetes.io/component', 'something')}"
    if call.verb != "patch":
        return ""
    if call.subresource == "status":
        status = sent.get("status") or {}
        phase = [str(status["phase"])] if "phase" in status else []
        return " ".join([*phase, *(field for field in TELLING if field in status)])
    fields = [*(sent.get("spec") or {}), *(sent.get("metadata") or {})]
    return " ".join(sorted(set(fields) - {"resourceVersion", "uid"}))


def points(writes: Iterable[tuple[str, ProxiedRequest]]) -> list[KillPoint]:
    """The points of the writes that processes sent, in their order."""
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for process, call in writes:
        what = describe(call)
        seen[process, what] += 1
        found.append(KillPoint(process, what, seen[process, what]))
    return found
