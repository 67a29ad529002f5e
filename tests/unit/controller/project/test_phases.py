"""Phase of a built Deployment: whole patches."""

import pytest

from controller.project.phases import phase_patch
from controller.runtime.decision import Patch
from crds import kinds
from tests.unit.controller.conftest import NOW

NOW_TEXT, EARLIER = "2026-11-21T12:00:00Z", "2026-11-21T10:00:00Z"


def condition(type_, reason, message, time=NOW_TEXT):
    return {
        "type": type_,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": time,
        "observedGeneration": 7,
    }


@pytest.mark.parametrize(
    ("active", "spec", "phase", "reason", "starts", "advice"),
    [
        ("dep-a", {}, "Active", "Active", "This is the project's active", "deployment."),
        ("dep-b", {}, "Superseded", "Superseded", "Another deployment is active", "raising spec.activation."),
        (None, {}, "Superseded", "Superseded", "No deployment is active", "run it by its name."),
        ("dep-b", {"preview": {}}, "Superseded", "Preview", "A preview never becomes", "run it by its name."),
        (None, {"preview": {}}, "Superseded", "Preview", "A preview never becomes", "run it by its name."),
    ],
)
@pytest.mark.parametrize("tested", [True, False])
def test_built_deployment_gets_the_phase_that_its_project_gives(
    make, active, spec, phase, reason, starts, advice, tested
):
    smoke = [condition("SmokeTested", "SmokeSucceeded", "It took 2 s.", EARLIER)] if tested else []
    deployment = make.deployment(metadata={"generation": 7}, **spec)
    deployment.raw["status"]["conditions"].extend(smoke)
    [patch] = phase_patch(deployment, active, EARLIER, NOW)
    message = patch.body["status"]["conditions"][0]["message"]
    assert message.startswith(starts) and message.endswith(advice)
    conditions = [condition("Ready", reason, message), condition("Built", "Built", "m"), *smoke]
    status = {"observedGeneration": 7, "phase": phase, "conditions": conditions}
    activated = {"activatedAt": EARLIER} if phase == "Active" else {}
    version = deployment.resource_version
    assert patch == Patch(kinds.DEPLOYMENT, "dep-a", {"status": {**status, **activated}}, version)
    written = {**deployment.raw["status"], **status, **activated}
    again = type(deployment)({**deployment.raw, "status": written})
    assert phase_patch(again, active, EARLIER, NOW) == ()
    # An active Deployment keeps the time of its activation.
    assert phase_patch(again, active, NOW_TEXT, NOW) == ()


def test_active_deployment_of_an_unknown_activation_time_has_none(make):
    [patch] = phase_patch(make.deployment(), "dep-a", None, NOW)
    assert "activatedAt" not in patch.body["status"]
