"""Where pods run and what they get: the installation's word, the plan's and the Project's."""

import json
from dataclasses import replace

import pytest

from controller.config import ConfigError, parse
from controller.deployment import pod as build_pod
from controller.pods.ceilings import AllowedNodes
from controller.pods.placement import (
    NOT_DISRUPTED,
    NodePlacement,
    NodePlacements,
    merge_resources,
    parse_placements,
)
from controller.run import pod
from controller.run.warm import pod as warm_pod
from tests.unit.controller.test_config import GOOD

GPU = {
    "run": {
        "nodeSelector": {"pool": "crews"},
        "tolerations": [{"key": "crews", "operator": "Exists"}],
        "runtimeClassName": "gvisor",
        "imagePullSecrets": [{"name": "pull"}],
        "resources": {"limits": {"memory": "2Gi"}},
    },
    "build": {"nodeSelector": {"pool": "builds"}},
    "plans": {
        "pro": {
            "nodeSelector": {"accelerator": "nvidia"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "resources": {"limits": {"nvidia.com/gpu": 1}},
            "max": {"nvidia.com/gpu": 2},
        }
    },
    "allowed": {
        "nodeSelector": {"zone": ["*"], "pool": ["*"]},
        "tolerations": [{"key": "mine", "effect": "NoSchedule"}],
    },
}


def built(make, config, places=GPU, **spec):
    project = make.project(**spec)
    found = config_with(config, places)
    return pod.build(make.run(), project, make.deployment(), frozenset(), found, 1_800_000_000)["spec"]


def config_with(config, places):
    return replace(config, placements=parse_placements(json.dumps(places)))


def test_empty_placement_adds_nothing(make, config):
    assert parse_placements("") == parse_placements("{}") == NodePlacements()
    assert NodePlacement().spec() == {}
    assert not {"nodeSelector", "tolerations", "runtimeClassName", "imagePullSecrets"} & set(
        built(make, config, {})
    )


def test_run_gets_the_placement_of_all_runs(make, config):
    spec = built(make, config, plan="free")
    assert spec["nodeSelector"] == {"pool": "crews"}
    assert spec["runtimeClassName"] == "gvisor"
    assert spec["tolerations"] == [{"key": "crews", "operator": "Exists"}]
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert spec["containers"][0]["resources"]["limits"]["memory"] == "2Gi"


def test_installation_and_plan_choose_a_user_namespace():
    places = parse_placements(
        '{"run": {"hostUsers": false}, "plans": {"pro": {"hostUsers": true}, "free": {}}}'
    )
    assert [places.for_run(plan).spec()["hostUsers"] for plan in ("free", "pro", "other")] == [
        False,
        True,
        False,
    ]
    assert "hostUsers" not in places.build.spec()


def test_plan_adds_a_gpu(make, config):
    spec = built(make, config, plan="pro")
    assert spec["nodeSelector"] == {"pool": "crews", "accelerator": "nvidia"}
    assert {toleration["key"] for toleration in spec["tolerations"]} == {"crews", "nvidia.com/gpu"}
    assert spec["runtimeClassName"] == "gvisor"
    limits = spec["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "3Gi", "nvidia.com/gpu": 1}


def test_an_unset_limit_is_at_least_what_the_installation_requests(make, config):
    requests = {"memory": "2Gi", "cpu": "500m", "nvidia.com/gpu": 1}
    placements = parse_placements(json.dumps({"run": {"resources": {"requests": requests}}}))
    placed = replace(config, placements=placements)

    def resources(**run):
        project = make.project(run=run)
        body = pod.build(make.run(), project, make.deployment(), frozenset(), placed, 0)
        return body["spec"]["containers"][0]["resources"], placements.notes(project)

    limits = {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "3Gi", "nvidia.com/gpu": 1}
    assert resources() == ({"requests": requests, "limits": limits}, ())
    own, notes = resources(resources={"requests": {"memory": "1536Mi"}})
    assert (own["requests"]["memory"], own["limits"]["memory"], notes) == ("1536Mi", "2Gi", ())


def test_project_sets_resources_but_not_isolation(make, config):
    spec = built(
        make,
        config,
        plan="pro",
        run={"resources": {"limits": {"memory": "8Gi", "nvidia.com/gpu": 2}}},
        pod={
            "nodeSelector": {"pool": "services", "zone": "a"},
            "tolerations": [{"key": "mine", "operator": "Exists", "effect": "NoSchedule"}],
            "imagePullSecrets": [{"name": "pull"}, {"name": "own"}],
        },
    )
    assert spec["nodeSelector"] == {"pool": "crews", "accelerator": "nvidia", "zone": "a"}
    assert spec["containers"][0]["resources"]["limits"]["memory"] == "8Gi"
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 2
    assert [secret["name"] for secret in spec["imagePullSecrets"]] == ["pull", "own"]
    assert [toleration["key"] for toleration in spec["tolerations"]][-1] == "mine"


ALL_FIELDS = {
    "nodeSelector": {"pool": "crews", "disk": "ssd"},
    "tolerations": [{"key": "crews"}],
    "imagePullSecrets": [{"name": "pull"}],
    "runtimeClassName": "gvisor",
    "priorityClassName": "low",
    "resources": {"requests": {"cpu": 0.5, "memory": "1Gi"}, "limits": {"cpu": 1, "memory": "2Gi"}},
    "max": {"cpu": "8", "memory": "16Gi"},
    "hostUsers": False,
    "labels": {"queue": "crews", "team": "a"},
    "annotations": {"note": "n", "cost": "1"},
}
OF_PLAN = {
    "nodeSelector": {"pool": "paid"},
    "tolerations": [{"key": "paid"}],
    "imagePullSecrets": [{"name": "paid"}],
    "runtimeClassName": "kata",
    "priorityClassName": "high",
    "resources": {"limits": {"cpu": 4}},
    "max": {"cpu": "32"},
    "buildMax": {"memory": "12Gi"},
    "hostUsers": True,
    "labels": {"queue": "paid"},
    "annotations": {"cost": "2"},
}


def test_whole_setting_is_read_and_a_plan_overrides_it():
    builds = {name: value for name, value in ALL_FIELDS.items() if name != "resources"}
    allowed = {
        "nodeSelector": {"zone": ["*"], "disk": ["ssd", "hdd"]},
        "tolerations": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
    }
    places = parse_placements(
        json.dumps(
            {"run": ALL_FIELDS, "build": builds, "plans": {"pro": OF_PLAN, "free": {}}, "allowed": allowed}
        )
    )
    run = NodePlacement(
        node_selector={"pool": "crews", "disk": "ssd"},
        tolerations=({"key": "crews"},),
        image_pull_secrets=({"name": "pull"},),
        runtime_class="gvisor",
        resources={"requests": {"cpu": 0.5, "memory": "1Gi"}, "limits": {"cpu": 1, "memory": "2Gi"}},
        max={"cpu": "8", "memory": "16Gi"},
        host_users=False,
        labels={"queue": "crews", "team": "a"},
        annotations={"note": "n", "cost": "1"},
        priority_class="low",
    )
    assert (places.run, places.build) == (run, replace(run, resources={}))
    assert places.allowed == AllowedNodes(
        {"zone": ("*",), "disk": ("ssd", "hdd")}, ({"key": "a", "value": "b", "effect": "NoSchedule"},)
    )
    assert places.plans["pro"].build_max == {"memory": "12Gi"}
    assert places.for_run("other") == places.for_run("free") == run
    assert places.for_run("pro") == NodePlacement(
        node_selector={"pool": "paid", "disk": "ssd"},
        tolerations=({"key": "paid"}, {"key": "crews"}),
        image_pull_secrets=({"name": "paid"}, {"name": "pull"}),
        runtime_class="kata",
        resources={"requests": {"memory": "1Gi"}, "limits": {"cpu": 4, "memory": "2Gi"}},
        max={"cpu": "32", "memory": "16Gi"},
        host_users=True,
        labels={"queue": "paid", "team": "a"},
        annotations={"note": "n", "cost": "2"},
        priority_class="high",
    )


def test_fields_of_a_pod_are_those_of_the_installation_over_the_project():
    place = parse_placements(json.dumps({"run": ALL_FIELDS})).run
    own = {
        "nodeSelector": {"pool": "mine", "zone": "a"},
        "tolerations": [{"key": "mine"}],
        "imagePullSecrets": [{"name": "pull"}, {"name": "mine"}],
    }
    assert place.spec(own) == {
        "nodeSelector": {"pool": "crews", "disk": "ssd", "zone": "a"},
        "tolerations": [{"key": "crews"}, {"key": "mine"}],
        "imagePullSecrets": [{"name": "pull"}, {"name": "mine"}],
        "runtimeClassName": "gvisor",
        "priorityClassName": "low",
        "hostUsers": False,
    }
    assert NodePlacement().spec(own) == own


def test_ceilings_include_requests_and_limits_of_the_installation():
    limited = {"max": {"cpu": "8", "memory": "16Gi"}, "resources": {"limits": {"cpu": 4}}}
    assert parse_placements(json.dumps({"run": limited})).run.ceilings() == {
        "cpu": "8",
        "memory": "16Gi",
        "ephemeral-storage": "100Gi",
    }
    own = {"requests": {"cpu": 32, "memory": "80Gi"}, "limits": {"memory": "90Gi"}}
    assert NodePlacement(resources=own).ceilings() == {
        "cpu": 32,
        "memory": "90Gi",
        "ephemeral-storage": "100Gi",
    }


QUEUED = {
    "run": {
        "labels": {"kueue.x-k8s.io/queue-name": "crews", "team": "a"},
        "annotations": {"karpenter.sh/do-not-disrupt": "false", "note": "n"},
        "priorityClassName": "low",
    },
    "plans": {"pro": {"labels": {"kueue.x-k8s.io/queue-name": "paid"}, "priorityClassName": "high"}},
    "build": {"labels": {"kueue.x-k8s.io/queue-name": "builds"}, "priorityClassName": "lowest"},
}


def test_pods_carry_the_labels_of_a_queue_and_a_priority(make, config):
    config = config_with(config, QUEUED)
    pods = [
        pod.build(make.run(), make.project(plan=plan), make.deployment(), frozenset(), config, 1_800_000_000)
        for plan in ("free", "pro")
    ]
    queues = [body["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] for body in pods]
    assert (queues, [body["spec"]["priorityClassName"] for body in pods]) == (
        ["crews", "paid"],
        ["low", "high"],
    )
    labels, annotations = pods[1]["metadata"]["labels"], pods[1]["metadata"]["annotations"]
    assert (labels["team"], labels["crewyard.dev/run"]) == ("a", "run-a")
    assert (annotations["note"], annotations["karpenter.sh/do-not-disrupt"]) == ("n", "false")
    build = build_pod.assemble(make.deployment(), make.project(), "dep-a-1", 1, config, 1_800_000_000)
    assert build["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "builds"
    assert build["spec"]["priorityClassName"] == "lowest"


def test_autoscalers_wait_for_runs_and_builds_but_not_for_waiting_pods(make, config):
    project, deployment = make.project(), make.deployment()
    run = pod.build(make.run(), project, deployment, frozenset(), config, 1_800_000_000)
    build = build_pod.assemble(deployment, project, "dep-a-1", 1, config, 1_800_000_000)
    for body in (run, build):
        assert NOT_DISRUPTED.items() <= body["metadata"]["annotations"].items()
    source = warm_pod.template(project, deployment, None, config)
    waiting = warm_pod.build(source, "warm-a", config, 1_800_000_000)
    assert not NOT_DISRUPTED.keys() & waiting["metadata"]["annotations"].keys()


@pytest.mark.parametrize(
    ("placement", "words"),
    [
        ([], "it must be an object"),
        ({"runs": {}}, "it has 'runs'"),
        ({"run": []}, "run must be an object"),
        ({"run": {"nodeSelektor": {}}}, "run has 'nodeSelektor'"),
        ({"run": {"nodeSelector": {"a": 1}}}, "run.nodeSelector"),
        ({"run": {"tolerations": {}}}, "run.tolerations"),
        ({"run": {"imagePullSecrets": [{}]}}, "run.imagePullSecrets"),
        ({"run": {"runtimeClassName": 1}}, "run.runtimeClassName"),
        ({"run": {"priorityClassName": []}}, "run.priorityClassName"),
        ({"run": {"labels": {"a": 1}}}, "run.labels"),
        ({"build": {"labels": {"crewyard.dev/run": "run-a"}}}, "build.labels has 'crewyard.dev/run'"),
        ({"run": {"annotations": {"app.kubernetes.io/name": "x"}}}, "run.annotations has 'app."),
        ({"run": {"hostUsers": "no"}}, "run.hostUsers"),
        ({"build": {"resources": {}}}, "build has 'resources'"),
        ({"run": {"max": {"cpu": "many"}}}, "run.max.cpu"),
        ({"run": {"max": []}}, "run.max"),
        ({"run": {"buildMax": {}}}, "run has 'buildMax'"),
        ({"plans": {"pro": {"buildMax": {"memory": "-1"}}}}, "plans.pro.buildMax.memory"),
        ({"allowed": {"labels": {}}}, "allowed has 'labels'"),
        ({"allowed": {"nodeSelector": {"zone": "a"}}}, "allowed.nodeSelector"),
        ({"allowed": {"tolerations": [{"effect": "NoSchedule"}]}}, "allowed.tolerations"),
        ({"allowed": {"tolerations": [{"key": "a", "operator": "Exists"}]}}, "allowed.tolerations"),
        ({"plans": []}, "plans"),
        ({"plans": {"pro": {"resources": {"limit": {}}}}}, "plans.pro.resources has 'limit'"),
        ({"plans": {"pro": {"resources": {"limits": []}}}}, "plans.pro.resources.limits"),
        ({"plans": {"pro": {"resources": {"limits": {"nvidia.com/gpu": True}}}}}, "nvidia.com/gpu"),
        ({"run": {"resources": {"requests": {"cpu": "many"}}}}, "run.resources.requests.cpu"),
        (
            {"run": {"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "2000Mi"}}}},
            "memory is 2Gi, above its limit 2000Mi; lower it, or raise run.resources.limits.memory",
        ),
        (
            {
                "run": {"resources": {"limits": {"cpu": "2"}}},
                "plans": {"pro": {"resources": {"requests": {"cpu": "2500m"}}}},
            },
            "plans.pro.resources.requests.cpu is 2500m, above its limit 2",
        ),
    ],
)
def test_invalid_setting_error_names_it(placement, words):
    with pytest.raises(ConfigError, match="CREWYARD_PODS") as refused:
        parse({**GOOD, "CREWYARD_PODS": json.dumps(placement)})
    assert words in str(refused.value)


def test_requests_up_to_the_limits_are_accepted():
    sizes = {"requests": {"cpu": "2", "memory": "2Gi"}, "limits": {"cpu": 2, "memory": "2048Mi"}}
    # A plan's limit replaces the request below it.
    plan = {"resources": {"limits": {"cpu": "1"}}}
    text = json.dumps({"run": {"resources": sizes}, "plans": {"pro": plan}})
    assert parse_placements(text).for_run("pro").resources["requests"] == {"memory": "2Gi"}


def test_inherited_request_above_the_limit_is_omitted():
    below = {"requests": {"memory": "2Gi", "cpu": "1"}, "limits": {"memory": "4Gi"}}
    assert merge_resources(below, {"limits": {"memory": "512Mi"}}) == {
        "requests": {"cpu": "1"},
        "limits": {"memory": "512Mi"},
    }
    own = {"requests": {"memory": "256Mi"}, "limits": {"memory": "512Mi"}}
    assert merge_resources(below, own)["requests"] == {"memory": "256Mi", "cpu": "1"}
