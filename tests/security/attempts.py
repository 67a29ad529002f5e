"""Reads attempts.yaml: ways to more than a service account has. Called by test_rights."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).with_name("attempts.yaml")


@dataclass(frozen=True)
class EscalationAttempt:
    """`review` is the specification of a SubjectAccessReview without its user."""

    name: str
    method: str
    path: str
    review: dict[str, Any]
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def attempts(account: str, node: str, pod: str) -> list[EscalationAttempt]:
    """Those of an account; `node` and `pod` (one of the service's own) are there."""
    table = yaml.safe_load(TABLE.read_text().replace("{node}", node).replace("{pod}", pod))
    return [_attempt(row) for row in (*table["everybody"], *table[account])]


def _attempt(row: dict[str, Any]) -> EscalationAttempt:
    verb, what, namespace, name = ("" if word == "-" else word for word in row["ask"].split())
    group, _, resource = what.rpartition("/")
    resource, _, subresource = resource.partition(":")
    about = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    review: dict[str, Any] = {"resourceAttributes": {**about, "namespace": namespace, "name": name}}
    if not what:
        review = {"nonResourceAttributes": {"verb": verb, "path": namespace}}
    method, path = row["call"].split(" ", 1)
    return EscalationAttempt(row["what"], method, path, review, row.get("body"), row.get("headers") or {})
