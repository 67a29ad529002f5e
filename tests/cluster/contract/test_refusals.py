"""Objects that the apiserver refuses, with messages that name the next step."""

import pytest

from crds.kinds import DEPLOYMENT, PROJECT, RUN
from kube import errors

GIT = {"url": "https://git.example.com/team/crew.git", "commit": "0123456789012345678901234567890123456789"}
SOURCE = {"git": GIT}


def project(**git):
    return {"source": {"git": {"url": "https://git.example.com/a.git", **git}}}


@pytest.mark.parametrize(
    ("kind", "name", "spec", "words"),
    [
        (PROJECT, "Upper", {}, "RFC 1123"),
        (PROJECT, "a" * 53, {}, "at most 52"),
        (PROJECT, "p", project(url="file:///etc"), "must begin with https://"),
        (PROJECT, "p", project(url="ext::sh -c id"), "must begin with https://"),
        (PROJECT, "p", project(url="https://me:secret@git.example.com/a.git"), "spec.source.git.secretRef"),
        *(
            (PROJECT, "p", project(secretRef={"name": name}), "begins and ends with a letter")
            for name in ("..", "../pods/x", "x?watch=true", "Upper", "x ")
        ),
        (PROJECT, "p", {"webhook": {"secretRef": {"name": "../x"}}}, "a Secret's name"),
        (PROJECT, "p", project(ref={"branch": "a", "tag": "b"}), "only one of branch, tag and commit"),
        (PROJECT, "p", project(ref={"branch": "--upload-pack=x"}), "is not a branch name"),
        (PROJECT, "p", project(path="a/../../b"), "must not contain '..'"),
        (PROJECT, "p", project(interval="soon"), "for example 90s"),
        (PROJECT, "p", project(crew="main:kick off"), "spec.source.git.crew"),
        (PROJECT, "p", project(crew="../main.py"), "spec.source.git.crew"),
        (PROJECT, "p", {"run": {"timeout": "0s"}}, "above zero"),
        (PROJECT, "p", {"pod": {"env": [{"name": "PATH", "value": "x"}]}}, "set by the service"),
        (PROJECT, "p", {"pod": {"env": [{"name": "CREWYARD_TOKEN", "value": "x"}]}}, "set by the service"),
        (DEPLOYMENT, "mine", {"project": "p", "source": SOURCE}, "must begin with dep-"),
        (DEPLOYMENT, "dep-a", {"source": SOURCE}, "spec.project"),
        (DEPLOYMENT, "dep-a", {"project": "p", "source": {}}, "exactly one of"),
        (
            DEPLOYMENT,
            "dep-a",
            {"project": "p", "source": {"git": GIT, "archive": {"upload": "upl_1"}}},
            "exactly one",
        ),
        (RUN, "mine", {"project": "p"}, "must begin with run-"),
        (RUN, "run-a", {}, "set spec.project"),
        (RUN, "run-a", {"project": "p", "input": [1]}, "must be of type object"),
        (RUN, "run-a", {"deployment": "dep_a"}, "written dep-ab12 here"),
        (RUN, "run-a", {"project": "p", "entrypoint": "main:kick off"}, "module:object"),
        (RUN, "run-a", {"project": "p", "entrypoint": "a/../b.py"}, "a file such as main.py"),
        (RUN, "run-a", {"project": "p", "entrypoint": "/etc/x.py"}, "a name of the configuration"),
        (RUN, "run-a", {"project": "p", "timeout": "1.5h"}, "for example 90s"),
    ],
)
async def test_invalid_object_is_refused_with_the_next_step(kube, kind, name, spec, words):
    with pytest.raises(errors.Invalid) as refused:
        await kube.create(kind, {"metadata": {"name": name}, "spec": spec})
    assert words in refused.value.message
    assert refused.value.details.get("causes")


async def refused(call, words):
    with pytest.raises(errors.Invalid) as error:
        await call
    assert words in error.value.message


@pytest.mark.parametrize("crew", ["writer", "agents.hello:agent", "1_hello.py", "crews/a/crew.jsonc"])
async def test_a_name_and_an_entrypoint_are_accepted_as_crew(kube, crew):
    await kube.create(PROJECT, {"metadata": {"name": "p"}, "spec": project(crew=crew)})
    spec = {"project": "p", "source": SOURCE, "crew": crew}
    created = await kube.create(DEPLOYMENT, {"metadata": {"name": "dep-a"}, "spec": spec})
    assert created["spec"]["crew"] == crew


async def test_deployment_is_immutable_but_for_activation(kube):
    await kube.create(DEPLOYMENT, {"metadata": {"name": "dep-a"}, "spec": {"project": "p", "source": SOURCE}})
    for change in (
        {"project": "q"},
        {"message": "other"},
        {"preview": {}},
        {"source": {"git": {"commit": "1" * 40}}},
    ):
        await refused(kube.patch(DEPLOYMENT, "dep-a", {"spec": change}), "create a new one instead")
    await kube.patch(DEPLOYMENT, "dep-a", {"spec": {"activation": 2}})
    await refused(kube.patch(DEPLOYMENT, "dep-a", {"spec": {"activation": 1}}), "must not decrease")
    await refused(kube.patch(DEPLOYMENT, "dep-a", {"spec": {"activation": None}}), "must not decrease")


async def test_failed_is_final_and_image_is_written_once(kube):
    await kube.create(DEPLOYMENT, {"metadata": {"name": "dep-a"}, "spec": {"project": "p", "source": SOURCE}})
    await kube.patch(
        DEPLOYMENT, "dep-a", {"status": {"phase": "Superseded", "image": "r/p@sha256:1"}}, "status"
    )
    await kube.patch(DEPLOYMENT, "dep-a", {"status": {"phase": "Active"}}, "status")
    await refused(
        kube.patch(DEPLOYMENT, "dep-a", {"status": {"image": "r/p@sha256:2"}}, "status"), "written once"
    )
    await kube.create(DEPLOYMENT, {"metadata": {"name": "dep-b"}, "spec": {"project": "p", "source": SOURCE}})
    await kube.patch(DEPLOYMENT, "dep-b", {"status": {"phase": "Failed"}}, "status")
    for status in ({"phase": "Active"}, {"order": 9}, None):
        await refused(kube.patch(DEPLOYMENT, "dep-b", {"status": status}, "status"), "which is final")
    # No write of the status could record that it was seen.
    for change in ({"activation": 1}, {"activation": 0}, {"cancel": False}):
        await refused(kube.patch(DEPLOYMENT, "dep-b", {"spec": change}), "cannot become active")
    await kube.patch(DEPLOYMENT, "dep-b", {"spec": {"project": "p"}, "metadata": {"labels": {"a": "b"}}})


async def test_preview_cannot_be_activated(kube):
    spec = {"project": "p", "source": SOURCE, "preview": {}}
    await kube.create(DEPLOYMENT, {"metadata": {"name": "dep-a"}, "spec": spec})
    await refused(kube.patch(DEPLOYMENT, "dep-a", {"spec": {"activation": 1}}), "never becomes active")
    await kube.patch(DEPLOYMENT, "dep-a", {"spec": {"cancel": True}})


async def test_new_run_is_pending_and_reconciling(kube):
    made = await kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": {"project": "p"}})
    assert made["status"]["phase"] == "Pending"
    assert {c["type"]: c["status"] for c in made["status"]["conditions"]} == {
        "Succeeded": "Unknown",
        "Reconciling": "True",
    }


@pytest.mark.parametrize("entrypoint", ["a", "my-graph_2", "pkg.crew:My.Crew", "src/a/main.py", "crew.jsonc"])
async def test_forms_of_an_entrypoint(kube, entrypoint):
    spec = {"project": "p", "entrypoint": entrypoint}
    created = await kube.create(RUN, {"metadata": {"generateName": "run-"}, "spec": spec})
    assert created["spec"]["entrypoint"] == entrypoint


async def test_run_spec_allows_deployment_once_and_cancel(kube):
    spec = {"project": "p", "input": {"a": {"b": [1, 2]}}, "timeout": "1m"}
    await kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": spec})
    changes = ({"project": "q"}, {"input": {"a": None}}, {"timeout": "2m"}, {"entrypoint": "a:b"})
    for change in (*changes, {"config": {}}, {"context": {}}):
        await refused(kube.patch(RUN, "run-a", {"spec": change}), "is immutable; create a new Run")
    await kube.patch(RUN, "run-a", {"spec": {"deployment": "dep-a"}})
    await refused(kube.patch(RUN, "run-a", {"spec": {"deployment": "dep-b"}}), "set once")
    await kube.patch(RUN, "run-a", {"spec": {"cancel": True}})
    for back in (False, None):
        await refused(kube.patch(RUN, "run-a", {"spec": {"cancel": back}}), "cannot be undone")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Canceled"])
async def test_terminal_phase_is_final(kube, phase):
    await kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": {"project": "p"}})
    await kube.patch(RUN, "run-a", {"status": {"phase": phase, "durationMs": 1}}, "status")
    for status in ({"phase": "Running"}, {"durationMs": 2}, {"phase": None}, None):
        await refused(kube.patch(RUN, "run-a", {"status": status}, "status"), "final")
    for cancel in (True, False):
        await refused(kube.patch(RUN, "run-a", {"spec": {"cancel": cancel}}), "can no longer be canceled")
    for answers in ([], [{"request": "q1", "value": 1}]):
        await refused(kube.patch(RUN, "run-a", {"spec": {"answers": answers}}), "can no longer be answered")


async def test_fields_of_an_ended_run_can_be_applied_again(kube):
    spec = {"project": "p", "cancel": False, "answers": []}
    await kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": spec})
    await kube.patch(RUN, "run-a", {"status": {"phase": "Succeeded"}}, "status")
    again = await kube.patch(RUN, "run-a", {"spec": spec, "metadata": {"labels": {"a": "b"}}})
    assert again["metadata"]["generation"] == 1


async def test_claim_result_and_pod_are_written_once(kube):
    await kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": {"project": "p"}})
    first = {
        "claim": {"podUid": "u", "time": "2026-11-21T10:00:00Z"},
        "result": {"outcome": "succeeded", "durationMs": 1},
        "pod": {"name": "run-a", "uid": "u"},
    }
    await kube.patch(RUN, "run-a", {"status": first}, "status")
    await kube.patch(RUN, "run-a", {"status": first}, "status")
    for again in (
        {"claim": {"podUid": "v"}},
        {"result": {"outcome": "failed"}},
        {"pod": {"uid": "v"}},
        {"claim": None},
        {"pod": None},
    ):
        await refused(kube.patch(RUN, "run-a", {"status": again}, "status"), "written once")


async def test_unclaimed_pod_can_be_removed_from_status(kube):
    await kube.create(RUN, {"metadata": {"name": "run-a"}, "spec": {"project": "p"}})
    await kube.patch(RUN, "run-a", {"status": {"pod": {"name": "run-a", "uid": "u"}}}, "status")
    claimed = {"pod": None, "claim": {"podUid": "u", "time": "2026-11-21T10:00:00Z"}}
    for again in ({"pod": {"uid": "v"}}, claimed):
        await refused(kube.patch(RUN, "run-a", {"status": again}, "status"), "written once")
    await kube.patch(RUN, "run-a", {"status": {"pod": None}}, "status")
    await kube.patch(RUN, "run-a", {"status": {"pod": {"name": "run-a", "uid": "v"}}}, "status")
