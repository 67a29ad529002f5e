"""What a Project writes into its pods stays below the installation's ceilings, and the Project says so."""

import json
from dataclasses import replace

import pytest

from controller.deployment import pod as build_pod
from controller.deployment.build_result import DependenciesMissing
from controller.pods.ceilings import AllowedNodes, allow_nodes, lower_resources, raise_to
from controller.pods.placement import NodePlacements, parse_placements
from controller.project.decide import decide
from controller.run import pod as run_pod
from crds.conditions import find

HUGE = {
    "requests": {"memory": "1Mi", "cpu": "1m", "ephemeral-storage": "1Mi"},
    "limits": {"memory": "900Gi", "cpu": "500", "ephemeral-storage": "9Ti"},
}
NOW_SECONDS = 1_800_000_000


def with_pods(config, **pods):
    return replace(config, placements=parse_placements(json.dumps(pods)))


def run_spec(make, config, **spec):
    project = make.project(**spec)
    return run_pod.build(make.run(), project, make.deployment(), frozenset(), config, NOW_SECONDS)["spec"]


def run_resources(make, config, **spec):
    return run_spec(make, config, **spec)["containers"][0]["resources"]


def kaniko_resources(make, config, **spec):
    missing = DependenciesMissing("key", "r/i")
    pod = build_pod.dependencies(
        make.deployment(), make.project(**spec), "d1", 1, missing, config, NOW_SECONDS
    )
    return pod["spec"]["initContainers"][1]["resources"]


def test_project_gets_at_most_the_default_ceiling(make, config):
    ceilings = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi"}
    assert run_resources(make, config, run={"resources": HUGE})["limits"] == ceilings
    assert kaniko_resources(make, config, build={"resources": HUGE})["limits"] == ceilings


def test_requests_are_lowered_too(make, config):
    asked = {"requests": {"memory": "900Gi"}, "limits": {"memory": "900Gi"}}
    assert run_resources(make, config, run={"resources": asked})["requests"]["memory"] == "64Gi"


@pytest.mark.parametrize(
    ("own", "requested"),
    [
        ({"requests": {"memory": "300Mi"}, "limits": {"memory": "200Mi"}}, "200Mi"),
        ({"requests": {"memory": "200Mi"}, "limits": {"memory": "200Mi"}}, "200Mi"),
        ({"requests": {"memory": "100Mi"}, "limits": {"memory": "200Mi"}}, "100Mi"),
        # The limit is the default of a run, then that of a build.
        ({"requests": {"memory": "60Gi"}}, "1Gi"),
        ({"requests": {"memory": "60Gi"}, "limits": {"memory": "abc"}}, "1Gi"),
    ],
)
def test_a_request_is_at_most_its_limit(make, config, own, requested):
    assert run_resources(make, config, run={"resources": own})["requests"]["memory"] == requested
    of_build = kaniko_resources(make, config, build={"resources": own})["requests"]["memory"]
    assert of_build == {"1Gi": "4Gi"}.get(requested, requested)


def test_a_request_is_at_most_the_limit_of_its_plan(make, config):
    found = with_pods(config, plans={"pro": {"resources": {"limits": {"memory": "8Gi"}}}})
    asked = {"resources": {"requests": {"memory": "60Gi", "cpu": "8"}, "limits": {"cpu": "16"}}}
    assert run_resources(make, found, plan="pro", run=asked)["requests"] == {"memory": "8Gi", "cpu": "8"}


@pytest.mark.parametrize("amount", ["1e30", "99999999999999", 2**70, "9.9E", "64.0000001Gi"])
def test_no_spelling_of_an_amount_exceeds_the_ceiling(make, config, amount):
    assert run_resources(make, config, run={"resources": {"limits": {"memory": amount}}})["limits"] == {
        "cpu": "1",
        "memory": "64Gi",
        "ephemeral-storage": "3Gi",
    }


@pytest.mark.parametrize("amount", ["NaN", "Infinity", "-1", "1.2.3", "abc", "1ki"])
def test_invalid_amount_is_omitted(make, config, amount):
    limits = run_resources(make, config, run={"resources": {"limits": {"memory": amount}}})["limits"]
    assert limits["memory"] == "1Gi"


def test_an_amount_at_the_ceiling_stays_as_written(make, config):
    limits = {"cpu": "16000m", "memory": "65536Mi", "ephemeral-storage": "107374182400"}
    assert run_resources(make, config, run={"resources": {"limits": limits}})["limits"] == limits


def test_unavailable_resource_is_omitted(make, config):
    asked = {"requests": {"nvidia.com/gpu": 8}, "limits": {"nvidia.com/gpu": 8, "hugepages-2Mi": "1Gi"}}
    found = run_resources(make, config, run={"resources": asked})
    assert (
        set(found["limits"])
        == set(found["requests"]) | {"ephemeral-storage"}
        == {
            "cpu",
            "memory",
            "ephemeral-storage",
        }
    )


def test_a_plan_has_its_own_ceilings(make, config):
    found = with_pods(
        config,
        run={"max": {"memory": "8Gi"}},
        build={"max": {"memory": "6Gi"}},
        plans={"pro": {"max": {"memory": "32Gi", "nvidia.com/gpu": 2}, "buildMax": {"memory": "12Gi"}}},
    )
    asked = {"resources": {"limits": {"memory": "900Gi", "nvidia.com/gpu": 4}}}
    assert "nvidia.com/gpu" not in run_resources(make, found, run=asked)["limits"]
    for plan, run_memory, build_memory in (("free", "8Gi", "6Gi"), ("pro", "32Gi", "12Gi")):
        assert run_resources(make, found, plan=plan, run=asked)["limits"]["memory"] == run_memory
        assert kaniko_resources(make, found, plan=plan, build=asked)["limits"]["memory"] == build_memory
    assert run_resources(make, found, plan="pro", run=asked)["limits"]["nvidia.com/gpu"] == 2


def test_ceiling_is_never_below_the_installation_default(make, config):
    found = with_pods(config, plans={"pro": {"resources": {"limits": {"memory": "256Gi"}}}})
    assert run_resources(make, found, plan="pro")["limits"]["memory"] == "256Gi"
    asked = {"resources": {"limits": {"memory": "900Gi"}}}
    assert run_resources(make, found, plan="pro", run=asked)["limits"]["memory"] == "256Gi"


def test_a_project_chooses_no_nodes_by_default(make, config):
    spec = run_spec(
        make,
        config,
        pod={
            "tolerations": [{"operator": "Exists"}, {"key": "gpu", "operator": "Exists"}],
            "nodeSelector": {"kubernetes.io/hostname": "control-plane"},
        },
    )
    assert not {"tolerations", "nodeSelector"} & set(spec)


@pytest.mark.parametrize(
    ("toleration", "kept"),
    [
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "a", "effect": "NoSchedule"}, True),
        ({"key": "spot", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "spot", "operator": "Equal", "value": "no", "effect": "NoSchedule"}, False),
        ({"key": "spot", "operator": "Exists", "effect": "NoSchedule"}, False),
        # All effects of the key.
        ({"key": "spot", "operator": "Equal", "value": "yes"}, False),
        ({"operator": "Exists"}, False),
        ({"key": "", "operator": "Exists"}, False),
        # A toleration of all values is none of the empty one.
        ({"key": "plain"}, True),
        ({"key": "plain", "operator": "Exists"}, False),
    ],
)
def test_only_allowed_tolerations_are_kept(make, config, toleration, kept):
    spot = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
    allowed = {"tolerations": [{"key": "gpu"}, spot, {"key": "plain", "value": ""}]}
    spec = run_spec(make, with_pods(config, allowed=allowed), pod={"tolerations": [toleration]})
    assert spec.get("tolerations", []) == ([toleration] if kept else [])


def test_only_allowed_labels_are_kept(make, config):
    found = with_pods(config, allowed={"nodeSelector": {"disk": ["ssd"], "zone": ["*"]}})
    asked = {"disk": "hdd", "zone": "a", "kubernetes.io/hostname": "b"}
    assert run_spec(make, found, pod={"nodeSelector": asked})["nodeSelector"] == {"zone": "a"}
    assert run_spec(make, found, pod={"nodeSelector": {"disk": "ssd"}})["nodeSelector"] == {"disk": "ssd"}


CEILINGS = {"cpu": "16", "memory": "64Gi"}


@pytest.mark.parametrize(
    ("requested", "lowered", "notes"),
    [
        (None, {}, ()),
        ({"limits": None, "requests": {}}, {}, ()),
        ({"limits": {"cpu": 0, "memory": "65536Mi"}}, {"limits": {"cpu": 0, "memory": "65536Mi"}}, ()),
        (
            {"limits": {"gpu": 1, "cpu": "x" * 41, "memory": "900Gi"}, "requests": {"gpu": 1, "cpu": 99}},
            {"limits": {"memory": "64Gi"}, "requests": {"cpu": "16"}},
            (
                "run.limits.gpu is left out: the installation does not offer this resource",
                f"run.limits.cpu is left out: '{'x' * 40}' is not an amount",
                "run.limits.memory: 900Gi is lowered to 64Gi",
                "run.requests.gpu is left out: the installation does not offer this resource",
                "run.requests.cpu: 99 is lowered to 16",
            ),
        ),
        (
            {"requests": {"memory": "2Gi"}},
            {"requests": {"memory": "1Gi"}},
            ("run.requests.memory: 2Gi is lowered to its limit, 1Gi",),
        ),
        (
            {"limits": {"memory": "70Gi", "cpu": 2}, "requests": {"memory": "65Gi", "cpu": 3}},
            {"limits": {"memory": "64Gi", "cpu": 2}, "requests": {"memory": "64Gi", "cpu": 2}},
            (
                "run.limits.memory: 70Gi is lowered to 64Gi",
                "run.requests.memory: 65Gi is lowered to 64Gi",
                "run.requests.cpu: 3 is lowered to its limit, 2",
            ),
        ),
    ],
)
def test_notes_name_each_changed_amount(requested, lowered, notes):
    assert lower_resources(requested, CEILINGS, {"memory": "1Gi"}, "run") == (lowered, notes)


def test_a_default_limit_above_the_ceiling_raises_no_request():
    requested = {"requests": {"memory": "100Gi"}}
    assert lower_resources(requested, CEILINGS, {"memory": "128Gi"}, "run")[0] == {
        "requests": {"memory": "64Gi"}
    }


def test_ceilings_are_raised_to_greater_amounts_of_the_installation():
    own = {"cpu": 32, "memory": "65536Mi", "nvidia.com/gpu": 1}
    assert raise_to(CEILINGS, own) == {"cpu": 32, "memory": "64Gi", "nvidia.com/gpu": 1}


def test_notes_name_each_node_label_and_toleration_that_is_left_out():
    allowed = AllowedNodes({"disk": ("ssd",), "zone": ("*",)}, ({"key": "gpu"},))
    pod = {
        "nodeSelector": {"disk": "ssd", "zone": "a", "host": "b"},
        "tolerations": [{"key": "gpu", "value": "a"}, {"key": "spot"}],
        "imagePullSecrets": [{"name": "own"}],
    }
    reason = "is left out: the installation does not allow it"
    assert allow_nodes(pod, allowed) == (
        {
            "nodeSelector": {"disk": "ssd", "zone": "a"},
            "tolerations": [{"key": "gpu", "value": "a"}],
            "imagePullSecrets": [{"name": "own"}],
        },
        (f"pod.nodeSelector.host {reason}", f"pod.tolerations[1] {reason}"),
    )
    assert allow_nodes({}, allowed) == ({"nodeSelector": {}, "tolerations": []}, ())


def test_condition_names_the_changed_values(make):
    places = NodePlacements()
    project = make.project(
        run={"resources": {"limits": {"memory": "900Gi", "nvidia.com/gpu": 1}}},
        build={"resources": {"limits": {"cpu": "99"}, "requests": {"memory": "5Gi"}}},
        pod={"tolerations": [{"operator": "Exists"}], "nodeSelector": {"disk": "ssd"}},
    )
    decision = decide(project, [], None, make.now, lowered=places.notes(project))
    condition = find(decision.status["conditions"], "Limited")
    assert (condition["status"], condition["reason"]) == ("True", "AboveCeiling")
    for words in (
        "run.resources.limits.memory: 900Gi is lowered to 64Gi",
        "run.resources.limits.nvidia.com/gpu is left out",
        "build.resources.limits.cpu: 99 is lowered to 16",
        "build.resources.requests.memory: 5Gi is lowered to its limit, 4Gi",
        "pod.tolerations[0] is left out",
        "pod.nodeSelector.disk is left out",
    ):
        assert words in condition["message"]
    small = make.project(run={"resources": {"limits": {"memory": "2Gi"}}})
    within = decide(small, [], None, make.now, lowered=places.notes(small))
    assert find(within.status["conditions"], "Limited") is None
