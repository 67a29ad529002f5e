"""The run pod, against what the specification of its security and environment says."""

import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest

from api.v1.env.schema import NAME
from controller.config import Timing
from controller.pods.ceilings import AllowedNodes
from controller.pods.placement import NodePlacements
from controller.run import pod, startup
from controller.run.startup import RUNNING_MARGIN_SECONDS
from crds import pod_tokens
from crds.installation_limits import InstallationLimits
from crds.limits import FLUSH_SECONDS, GRACE_SECONDS, PlanLimits, Plans
from crds.times import format_second
from runner.pid1.settings import RunnerSettings

NOW = 1_800_000_000


def built(make, config, project=None, deployment=None, variables=frozenset(), **run):
    return pod.build(
        make.run(**run), project or make.project(), deployment or make.deployment(), variables, config, NOW
    )


def env_of(body):
    return {entry["name"]: entry.get("value") for entry in body["spec"]["containers"][0]["env"]}


def test_pod_has_one_container_without_volume_token_or_privilege(make, config):
    spec = built(make, config)["spec"]
    (container,) = spec["containers"]
    assert not {"volumes", "initContainers"} & set(spec)
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert spec["restartPolicy"] == "Never"
    security = container["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["runAsNonRoot"] is True
    assert security["allowPrivilegeEscalation"] is False
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["image"].endswith("@sha256:00")
    assert container["command"] == ["python3", "-I", "-S", "/opt/crewyard/runner"]
    assert container["workingDir"] == "/app"
    assert container["resources"]["limits"] == {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "3Gi"}


def test_token_is_for_this_run_and_outlives_it(make, config):
    body = built(make, config, timeout="2h", deployment=None)
    token = pod_tokens.verify(config.token_keys, env_of(body)["CREWYARD_TOKEN"], NOW)
    assert (token.kind, token.namespace, token.name, token.uid) == ("run", "crews", "run-a", "uid-run-a")
    assert token.expires > NOW + body["spec"]["activeDeadlineSeconds"] + 3600
    assert body["spec"]["activeDeadlineSeconds"] == 300 + 330 + 7200 + 60 + 86400


def test_installation_timeouts_reach_the_pod(make, config):
    limits = InstallationLimits(
        run_seconds=100, run_max_seconds=200, start_seconds=7, unschedulable_seconds=11, ask_seconds=50
    )
    config = replace(config, limits=limits, timing=Timing.from_limits(limits))
    for timeout, seconds in (({}, 100), ({"timeout": "150s"}, 150), ({"timeout": "9h"}, 200)):
        body = built(make, config, **timeout)
        assert env_of(body)["CREWYARD_START_TIMEOUT"] == "7"
        starts = config.timing.image_pull + 7 + RUNNING_MARGIN_SECONDS
        assert body["spec"]["activeDeadlineSeconds"] == starts + seconds + 50 + GRACE_SECONDS + FLUSH_SECONDS
        assert body["metadata"]["annotations"]["crewyard.dev/ask-seconds"] == "50"
        token = pod_tokens.verify(config.token_keys, env_of(body)["CREWYARD_TOKEN"], NOW)
        assert token.expires >= NOW + 11 + body["spec"]["activeDeadlineSeconds"]


def test_the_plan_of_the_project_lowers_timeouts(make, config):
    plans = Plans({"free": PlanLimits(60, 2), "trial": PlanLimits(60, 2, limits={"run_max_seconds": 60})})
    config = replace(config, plans=plans)

    def seconds(plan):
        return built(make, config, make.project(plan=plan), timeout="2h")["spec"]["activeDeadlineSeconds"]

    assert seconds("free") - seconds("trial") == 7200 - 60


@pytest.mark.parametrize("start_seconds", [7, 300])
def test_a_run_with_the_latest_claim_has_its_whole_timeout(make, config, start_seconds):
    limits = InstallationLimits(start_seconds=start_seconds, ask_seconds=0)
    timing = Timing.from_limits(limits)
    config = replace(config, limits=limits, timing=timing)
    node = {"type": "PodScheduled", "status": "True", "lastTransitionTime": make.ago(10_000)}
    assigned = make.now - timedelta(seconds=10_000)

    def latest(status, least):
        """Return the last second, since the node's assignment, at which a pod with that status may go on."""
        seconds = least
        while True:
            observed = make.pod(conditions=[node], **status)
            now = assigned + timedelta(seconds=seconds + 1)
            if startup.check(observed, now, timing).outcome is not None:
                return seconds
            seconds += 1

    pulls = {"reason": "ErrImagePull", "message": "m"}
    waiting = [{}, {"reason": "ContainerCreating"}, pulls]
    created = max(
        latest({"containerStatuses": [{"name": "crew", "state": {"waiting": state}}]}, 0) for state in waiting
    )
    running = {"startedAt": format_second(assigned + timedelta(seconds=created))}
    started = {"containerStatuses": [{"name": "crew", "state": {"running": running}}]}
    claimed = latest(started, created)
    body = built(make, config, timeout="90s")
    assert body["spec"]["activeDeadlineSeconds"] >= claimed + 90 + GRACE_SECONDS + FLUSH_SECONDS


def test_secret_precedes_plain_variables_and_reserved_names_win(make, config):
    project = make.project(pod={"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]})
    body = built(make, config, project, variables=frozenset({"A"}))
    env = env_of(body)
    assert "A" not in env and env["B"] == "2"
    assert env["HOME"] == "/home/crew"
    assert body["spec"]["containers"][0]["envFrom"] == [{"secretRef": {"name": "demo-env", "optional": True}}]


def test_reserved_names_in_the_secret_do_not_reach_the_run(make, config):
    wrong = {"PATH", "HOME", "PYTHONPATH", "CREWYARD_WARM", "CREWYARD_RUN"}
    project = make.project(pod={"env": [{"name": "URL", "value": "http://$(HOST)"}]})
    (container,) = built(make, config, project, variables=frozenset({"HOST", "A.B", "9", *wrong}))["spec"][
        "containers"
    ]
    assert "envFrom" not in container
    found = [one for one in container["env"] if "secretKeyRef" in one.get("valueFrom", {})]
    assert [one["name"] for one in found] == ["A.B", "HOST"]
    assert found[1]["valueFrom"]["secretKeyRef"] == {"name": "demo-env", "key": "HOST", "optional": True}
    env = {one["name"]: one.get("value") for one in container["env"]}
    # A plain variable may refer to one of the Secret, which comes before it.
    assert list(env).index("HOST") < list(env).index("URL")
    assert (env["HOME"], env["CREWYARD_RUN"], env["CREWYARD_SECRETS"]) == (
        "/home/crew",
        "run-a",
        "9,A.B,HOST",
    )
    assert not env.keys() & {"PATH", "PYTHONPATH", "CREWYARD_WARM"}
    only_wrong = env_of(built(make, config, variables=frozenset({"PATH"})))
    assert not only_wrong.keys() & {"PATH", "CREWYARD_SECRETS"}


@pytest.mark.parametrize(
    "name", ["PATH", "PATHS", "HOME", "HOMES", "PYTHON", "PYTHONPATH", "CREWYARD_", "CREWYARD", "_PATH", "A"]
)
def test_a_run_gets_each_variable_that_the_api_can_set(make, config, name):
    (container,) = built(make, config, variables=frozenset({name}))["spec"]["containers"]
    assert ("envFrom" in container) is (re.search(NAME["pattern"], name) is not None)


def test_runner_gets_the_names_of_masked_variables(make, config):
    environment = env_of(built(make, config, variables=frozenset({"KEY", "A_KEY"})))
    assert environment["CREWYARD_SECRETS"] == "A_KEY,KEY"
    assert "CREWYARD_SECRETS" not in env_of(built(make, config))


def test_runner_gets_its_storage_limit_in_bytes(make, config):
    (container,) = built(make, config)["spec"]["containers"]
    limit = next(entry for entry in container["env"] if entry["name"] == "CREWYARD_STORAGE_LIMIT")
    assert limit["valueFrom"] == {
        "resourceFieldRef": {"resource": "limits.ephemeral-storage", "divisor": "1"}
    }


@pytest.mark.parametrize(
    ("asked", "requests", "limits"),
    [
        (None, {"cpu": "50m", "memory": "128Mi"}, {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "3Gi"}),
        (
            {"limits": {"memory": "64Mi"}},
            {"cpu": "50m"},
            {"cpu": "1", "memory": "64Mi", "ephemeral-storage": "3Gi"},
        ),
        (
            {"requests": {"ephemeral-storage": "1Gi"}, "limits": {"ephemeral-storage": "8Gi"}},
            {"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "1Gi"},
            {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "8Gi"},
        ),
    ],
)
def test_resources_of_the_project_precede_the_defaults(make, config, asked, requests, limits):
    project = make.project(run={"resources": asked}) if asked else make.project()
    found = built(make, config, project)["spec"]["containers"][0]["resources"]
    assert found == {"requests": requests, "limits": limits}


def test_project_chooses_among_allowed_placements(make, config):
    extra = {
        "imagePullSecrets": [{"name": "pull"}],
        "nodeSelector": {"pool": "crews"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }
    allowed = AllowedNodes({"pool": ("crews",)}, ({"key": "gpu"},))
    found = replace(config, placements=NodePlacements(allowed=allowed))
    spec = built(make, found, make.project(pod=extra))["spec"]
    assert {key: spec[key] for key in extra} == extra


def test_same_arguments_give_the_same_pod(make, config):
    project, deployment, run = make.project(), make.deployment(), make.run()
    once = pod.build(run, project, deployment, frozenset(), config, NOW)
    again = pod.build(run, project, deployment, frozenset(), config, NOW)
    assert json.dumps(once) == json.dumps(again)
    assert once["metadata"]["name"] == run.name
    assert once["metadata"]["ownerReferences"][0] == {
        "apiVersion": "crewyard.dev/v1alpha1",
        "kind": "Run",
        "name": "run-a",
        "uid": "uid-run-a",
        "controller": True,
        "blockOwnerDeletion": False,
    }


def test_runner_has_most_of_the_grace_period(make, config):
    spec = built(make, config)["spec"]
    runner_variables = {**env_of({"spec": spec}), "CREWYARD_POD_UID": "u"}
    settings = RunnerSettings({name: value for name, value in runner_variables.items() if value})
    assert settings.stop_grace == GRACE_SECONDS
    left = spec["terminationGracePeriodSeconds"] - settings.stop_grace - settings.flush_grace
    assert 2 <= left <= 10, "to say how it ended, before the kubelet kills it"
