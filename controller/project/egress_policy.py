"""NetworkPolicy of a Project's runs: `run.egress` as far as the installation allows it. Pure.

Called by `controller.project.reconcile`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from controller.owner import reference
from controller.pods.run_egress import EgressTarget, allowed_rules
from controller.runtime.decision import Create, Decision, Delete, Patch
from controller.runtime.errors import Retry
from crds import kinds, names
from crds.objects import Object, Project
from kube.errors import KubeError

Json = dict[str, Any]


def decide(project: Project, current: Object | None, allowed: Sequence[EgressTarget]) -> Decision:
    """Return the Decision that makes, changes or deletes the NetworkPolicy of a Project's runs."""
    rules, _ = allowed_rules(project, allowed)
    owned = current is not None and project.uid in current.owner_uids
    if not rules:
        if current is None or not owned or current.deleting:
            return Decision()
        return Decision(delete=(Delete(kinds.NETWORK_POLICY, current.name, current.uid),))
    body = _policy(project, rules)
    if current is None or not owned:
        return Decision(create=(Create(kinds.NETWORK_POLICY, body),))
    if current.spec == body["spec"]:
        return Decision()
    spec = _replacement(current.spec, body["spec"])
    change = Patch(kinds.NETWORK_POLICY, current.name, {"spec": spec}, current.resource_version, None)
    return Decision(before=(change,))


def refusal_note(project: str, refusal: KubeError | Retry) -> str:
    """Return the note of a Project whose NetworkPolicy could not be read or written."""
    if isinstance(refusal, Retry):
        return f"run.egress is not applied: {refusal}; kubectl delete networkpolicy {policy_name(project)}"
    return (
        f"run.egress is not applied, because the kube-apiserver refuses the NetworkPolicy: {refusal.message}"
    )


def policy_name(project: str) -> str:
    """Return the name of the NetworkPolicy of a Project's runs."""
    return f"crewyard-egress-{project}"


def _replacement(current: Mapping[str, Any], desired: Json) -> Json:
    """Return the merge patch that also removes each key which `desired` lacks."""
    changed = {
        key: _replacement(current.get(key) or {}, value) if isinstance(value, dict) else value
        for key, value in desired.items()
    }
    return {**dict.fromkeys(current), **changed}


def _policy(project: Project, rules: Sequence[Json]) -> Json:
    selected = {names.LABEL_COMPONENT: names.COMPONENT_RUN, names.LABEL_PROJECT: project.name}
    return {
        "metadata": {
            "name": policy_name(project.name),
            "labels": {
                names.LABEL_MANAGED_BY: names.MANAGED_BY,
                names.LABEL_PART_OF: names.MANAGED_BY,
                names.LABEL_PROJECT: project.name,
            },
            "ownerReferences": [reference(kinds.PROJECT, project)],
        },
        "spec": {
            "podSelector": {"matchLabels": selected},
            "policyTypes": ["Egress"],
            "egress": list(rules),
        },
    }
