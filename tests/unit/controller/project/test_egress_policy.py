"""The NetworkPolicy of a Project's runs: exactly what the installation allows of `run.egress`."""

import json

import pytest

from controller.config import ConfigError, parse
from controller.pods.run_egress import EgressTarget, allowed_rules, parse_targets
from controller.project.decide import decide as decide_project
from controller.project.egress_policy import decide
from crds.conditions import find
from crds.objects import Object
from tests.unit.controller.test_config import GOOD

OLLAMA = EgressTarget("models", {"app": "ollama"}, (11434,), "ollama")
TOOLS = EgressTarget("tools")
ALLOWED = (OLLAMA, TOOLS)
NAMESPACE = "kubernetes.io/metadata.name"


def rule(namespace, labels=None, ports=()):
    pods = {"podSelector": {"matchLabels": labels}} if labels else {}
    listed = [{"protocol": "TCP", "port": port} for port in ports]
    peer = {"namespaceSelector": {"matchLabels": {NAMESPACE: namespace}}, **pods}
    return {"to": [peer], **({"ports": listed} if listed else {})}


def labelled(**labels):
    return {"podSelector": {"matchLabels": labels}}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"namespace": "models", "service": "ollama"}, rule("models", {"app": "ollama"}, [11434])),
        (
            {"namespace": "models", "service": "ollama", "ports": [11434]},
            rule("models", {"app": "ollama"}, [11434]),
        ),
        ({"namespace": "models", **labelled(app="ollama")}, rule("models", {"app": "ollama"}, [11434])),
        (
            {"namespace": "models", **labelled(app="ollama", size="small")},
            rule("models", {"app": "ollama", "size": "small"}, [11434]),
        ),
        ({"namespace": "tools"}, rule("tools")),
        ({"namespace": "tools", "ports": [80, 443]}, rule("tools", None, [80, 443])),
        ({"namespace": "tools", **labelled(app="search")}, rule("tools", {"app": "search"})),
        # More than the installation allows.
        ({"namespace": "models"}, None),
        ({"namespace": "models", "service": "vllm"}, None),
        ({"namespace": "models", "service": "ollama", "ports": [22]}, None),
        ({"namespace": "models", "service": "ollama", "ports": [11434, 22]}, None),
        ({"namespace": "models", **labelled(app="vllm")}, None),
        ({"namespace": "models", **labelled(size="small")}, None),
        ({"namespace": "models", "podSelector": {}}, None),
        ({"namespace": "tools", "service": "search"}, None),
        ({"namespace": "kube-system"}, None),
    ],
)
def test_an_entry_is_allowed_or_named(make, entry, expected):
    rules, refused = allowed_rules(make.project(run={"egress": [entry]}), ALLOWED)
    assert rules == ([expected] if expected else [])
    assert [note.partition(" ")[0] for note in refused] == ([] if expected else ["run.egress[0]"])


LONGEST_PREFIX = ".".join(("a" * 61, *["a" * 63] * 3))


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ({"version": "v1 beta"}, "'v1 beta' is not the value of a label"),
        ({"a": "b", "version": "v1-"}, "'v1-' is not the value of a label"),
        ({"a version": "v1"}, "'a version' is not the name of a label"),
        ({"Example.com/version": "v1"}, "'Example.com/version' is not the name of a label"),
        ({f"a{LONGEST_PREFIX}/b": "v1"}, f"'a{LONGEST_PREFIX}/b' is not the name of a label"),
        ({"example.com/version": "v1", "empty": "", f"{LONGEST_PREFIX}/{'b' * 63}": "v1"}, None),
    ],
)
def test_an_entry_with_an_invalid_label_is_left_out(make, labels, problem):
    entries = [{"namespace": "tools", **labelled(**labels)}, {"namespace": "tools", "ports": [80]}]
    rules, refused = allowed_rules(make.project(run={"egress": entries}), ALLOWED)
    valid = [] if problem else [rule("tools", labels)]
    assert rules == [*valid, rule("tools", None, [80])]
    listed = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    assert refused == ((f"run.egress[0] (tools/{listed}) is left out: {problem}",) if problem else ())


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"namespace": "kube-system"}, "kube-system/*"),
        ({"namespace": "models", "service": "vllm", "ports": [80, 443]}, "models/vllm:80,443"),
        ({"namespace": "models", **labelled(size="small", app="vllm")}, "models/app=vllm,size=small"),
    ],
)
def test_a_refused_entry_is_named_by_its_position_and_target(make, entry, text):
    project = make.project(run={"egress": [{"namespace": "tools"}, entry]})
    assert allowed_rules(project, ALLOWED) == (
        [rule("tools")],
        (f"run.egress[1] ({text}) is left out: the installation does not allow it",),
    )


def test_the_policy_selects_the_runs_of_this_project_alone(make):
    project = make.project("research", run={"egress": [{"namespace": "models", "service": "ollama"}]})
    [child] = decide(project, None, ALLOWED).create
    assert child.kind.path("crews") == "/apis/networking.k8s.io/v1/namespaces/crews/networkpolicies"
    assert child.name == "crewyard-egress-research"
    assert [owner["uid"] for owner in child.body["metadata"]["ownerReferences"]] == [project.uid]
    assert child.body["spec"] == {
        "podSelector": {
            "matchLabels": {"app.kubernetes.io/component": "run", "crewyard.dev/project": "research"}
        },
        "policyTypes": ["Egress"],
        "egress": [rule("models", {"app": "ollama"}, [11434])],
    }


def existing(project, allowed=ALLOWED, **metadata):
    """The policy as the apiserver has it after the first reconcile."""
    [child] = decide(project, None, allowed).create
    more = {"uid": "u", "resourceVersion": "7", **metadata}
    return Object({**child.body, "metadata": {**child.body["metadata"], **more}})


def test_an_unchanged_policy_is_not_written(make):
    project = make.project(run={"egress": [{"namespace": "tools"}]})
    decision = decide(project, existing(project), ALLOWED)
    assert (decision.create, decision.before, decision.delete) == ((), (), ())


def test_a_changed_spec_changes_the_policy(make):
    current = existing(make.project(run={"egress": [{"namespace": "tools"}]}))
    narrower = make.project(run={"egress": [{"namespace": "tools", "ports": [80]}]})
    [patch] = decide(narrower, current, ALLOWED).before
    assert patch.body["spec"]["egress"] == [rule("tools", None, [80])]
    assert (patch.resource_version, patch.subresource) == ("7", None)


def test_what_another_client_adds_to_the_selector_is_removed(make):
    """A merge patch keeps each key that it does not name."""
    project = make.project(run={"egress": [{"namespace": "tools"}]})
    current = existing(project)
    current.spec["ingress"] = []
    current.spec["podSelector"]["matchLabels"]["app"] = "none"
    current.spec["podSelector"]["matchExpressions"] = [{"key": "app", "operator": "Exists"}]
    [patch] = decide(project, current, ALLOWED).before
    desired = existing(project).spec
    assert patch.body["spec"] == {
        **desired,
        "ingress": None,
        "podSelector": {
            "matchLabels": {**desired["podSelector"]["matchLabels"], "app": None},
            "matchExpressions": None,
        },
    }


@pytest.mark.parametrize("spec", [{}, {"run": {"egress": []}}, {"run": {"egress": [{"namespace": "x"}]}}])
def test_a_policy_without_a_rule_is_deleted(make, spec):
    current = existing(make.project(run={"egress": [{"namespace": "tools"}]}))
    [deletion] = decide(make.project(**spec), current, ALLOWED).delete
    assert (deletion.name, deletion.uid) == ("crewyard-egress-demo", "u")
    assert decide(make.project(**spec), None, ALLOWED).delete == ()


def test_a_shorter_list_of_the_installation_takes_the_policy_away(make):
    project = make.project(run={"egress": [{"namespace": "tools"}]})
    assert decide(project, existing(project), ()).delete


def test_foreign_policy_is_not_changed(make):
    foreign = existing(make.project(run={"egress": [{"namespace": "tools"}]}), ownerReferences=[])
    decision = decide(make.project(), foreign, ALLOWED)
    assert (decision.create, decision.before, decision.delete) == ((), (), ())


def test_the_condition_names_the_entry_and_the_setting(make):
    project = make.project(run={"egress": [{"namespace": "models", "service": "vllm", "ports": [8000]}]})
    refused = allowed_rules(project, ALLOWED)[1]
    condition = find(
        decide_project(project, [], None, make.now, refused_egress=refused).status["conditions"], "Limited"
    )
    assert (condition["status"], condition["reason"]) == ("True", "EgressRefused")
    assert "run.egress[0] (models/vllm:8000) is left out" in condition["message"]
    assert "CREWYARD_RUN_EGRESS" in condition["message"]
    both = decide_project(
        project, [], None, make.now, lowered=["run.timeout: 9h is lowered"], refused_egress=refused
    )
    message = find(both.status["conditions"], "Limited")["message"]
    assert "CREWYARD_RUN_EGRESS" in message and "run.timeout: 9h is lowered" in message


def test_the_setting_is_a_list_of_targets():
    text = json.dumps(
        [
            {"namespace": "models", "service": "ollama", **labelled(app="ollama"), "ports": [11434]},
            {"namespace": "tools"},
        ]
    )
    assert parse_targets(text) == ALLOWED
    assert parse_targets('[{"namespace": "a", "ports": [1, 65535]}]') == (
        EgressTarget("a", ports=(1, 65535)),
    )
    assert parse_targets(" ") == ()
    assert parse({**GOOD, "CREWYARD_RUN_EGRESS": text}).run_egress == ALLOWED
    assert parse(GOOD).run_egress == ()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "namespace"),
        ({"namespace": ""}, "namespace"),
        ({"namespace": 1}, "namespace"),
        ([], "object with namespace"),
        ({"namespace": "a", "port": 1}, "'port'"),
        ({"namespace": "a", "service": 1}, "service"),
        ({"namespace": "a", "service": "b"}, "labels of the Service's pods"),
        ({"namespace": "a", "podSelector": {"app": "b"}}, "matchLabels"),
        ({"namespace": "a", "podSelector": []}, "matchLabels"),
        ({"namespace": "a", "podSelector": {"matchLabels": {"app": 1}}}, "matchLabels"),
        ({"namespace": "a", "podSelector": {"matchLabels": [1]}}, "matchLabels"),
        ({"namespace": "a", "podSelector": {"matchLabels": {}, "matchExpressions": []}}, "matchLabels"),
        ({"namespace": "a", "ports": 80}, "ports"),
        ({"namespace": "a", "ports": ["http"]}, "ports"),
        ({"namespace": "a", "ports": [0]}, "ports"),
        ({"namespace": "a", "ports": [80, 65536]}, "ports"),
        ({"namespace": "a", "ports": [True]}, "ports"),
    ],
)
def test_a_wrong_setting_stops_the_start_and_names_the_field(entry, words):
    with pytest.raises(ConfigError) as error:
        parse({**GOOD, "CREWYARD_RUN_EGRESS": json.dumps([{"namespace": "tools"}, entry])})
    assert "CREWYARD_RUN_EGRESS: [1]" in str(error.value) and words in str(error.value)


def test_a_setting_that_is_no_list_stops_the_start():
    with pytest.raises(ConfigError, match="CREWYARD_RUN_EGRESS: must be a JSON list"):
        parse({**GOOD, "CREWYARD_RUN_EGRESS": "{}"})
