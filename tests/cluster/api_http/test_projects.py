"""Projects and their variables, as API resources and as objects."""

import asyncio
import base64

import pytest

from api.projection import list_watch
from api.v1.conflicts import MAX_ATTEMPTS
from crds.kinds import PROJECT, SECRET


async def test_project_is_created_changed_and_deleted(testbed):
    body = {
        "name": "crew",
        "plan": "pro",
        "source": {"git": {"url": "https://git.example/x.git", "secret_ref": {"name": "pass"}}},
        "pod": {"node_selector": {"diskType": "ssd"}},
    }
    status, found, headers = await testbed.call("POST", "/v1/projects", body)
    assert (status, headers["Location"]) == (201, "/v1/projects/crew")
    made = found["data"]
    assert made["source"] == body["source"] and made["pod"] == body["pod"]
    assert made["active_deployment_id"] is None and made["created_at"].endswith("Z")
    stored = await testbed.kube.get(PROJECT, "crew")
    assert stored["metadata"]["labels"] == {"crewyard.dev/project": "crew"}
    assert stored["spec"]["source"]["git"]["secretRef"] == {"name": "pass"}
    assert stored["spec"]["pod"]["nodeSelector"] == {"diskType": "ssd"}
    assert await testbed.data("GET", "/v1/projects/crew") == made

    status, found, _ = await testbed.call("POST", "/v1/projects", {"name": "crew"})
    assert (status, found["error"]["code"]) == (409, "conflict")

    changed = await testbed.data("PATCH", "/v1/projects/crew", {"plan": "free", "pod": None})
    assert (changed["plan"], changed["pod"]) == ("free", None)
    assert changed["source"] == body["source"]

    status, _, _ = await testbed.call("DELETE", "/v1/projects/crew")
    assert status == 204
    assert (await testbed.call("GET", "/v1/projects/crew"))[0] == 404
    assert await testbed.kube.get(PROJECT, "crew") is None


async def test_waiting_builders_are_set_changed_and_removed(testbed):
    build = {"warm": 1, "requirements": ["lxml"]}
    made = await testbed.data("POST", "/v1/projects", {"name": "crew", "build": build})
    assert made["build"] == build
    changed = await testbed.data("PATCH", "/v1/projects/crew", {"build": {"warm": 2}})
    assert changed["build"] == {**build, "warm": 2}
    assert (await testbed.kube.get(PROJECT, "crew"))["spec"]["build"]["warm"] == 2
    changed = await testbed.data("PATCH", "/v1/projects/crew", {"build": {"warm": None}})
    assert changed["build"] == {"requirements": ["lxml"]}
    assert await testbed.data("GET", "/v1/projects/crew") == changed


async def test_unknown_plan_is_refused(testbed):
    await testbed.data("POST", "/v1/projects", {"name": "crew"})
    for method, path in (("POST", "/v1/projects"), ("PATCH", "/v1/projects/crew")):
        body = {"plan": "gold", **({"name": "gold"} if method == "POST" else {})}
        status, response = (await testbed.call(method, path, body))[:2]
        assert (status, response["error"]["details"]["field"]) == (400, "plan")
        assert "enterprise, free, pro" in response["error"]["message"]
    assert (await testbed.data("GET", "/v1/projects/crew"))["plan"] == "free"


async def test_project_that_the_watch_has_not_reported_takes_a_deployment(testbed, monkeypatch):
    reported, apply = asyncio.Event(), list_watch._apply

    async def apply_late(projection, item):
        await reported.wait()
        await apply(projection, item)

    monkeypatch.setattr(list_watch, "_apply", apply_late)
    git = {"url": "https://git.example/x.git", "ref": {"branch": "main"}}
    await testbed.kube.create(PROJECT, {"metadata": {"name": "late"}, "spec": {"source": {"git": git}}})
    body = {"project": "late", "source": {"git": {"commit": "0" * 40}}}
    made = await testbed.data("POST", "/v1/deployments", body)
    assert made["project"] == "late"
    reported.set()


@pytest.mark.parametrize(
    ("path", "field", "body"),
    [
        ("deployments", "project", {"source": {"git": {"commit": "0" * 40}}}),
        ("uploads", "project", {"size": 1}),
        ("runs", "deployment", {}),
    ],
)
async def test_body_names_a_missing_project(testbed, path, field, body):
    status, found, _ = await testbed.call("POST", f"/v1/{path}", {field: "absent", **body})
    assert (status, found["error"]["details"]) == (404, {"field": field})


@pytest.mark.parametrize(
    ("spec", "field", "word"),
    [
        ({"source": {"git": {"url": "file:///etc/passwd"}}}, "source.git.url", "https://"),
        (
            {"source": {"git": {"url": "https://a.example/b", "ref": {"branch": "x", "tag": "y"}}}},
            "source.git.ref",
            "only one",
        ),
        ({"run": {"timeout": "soon"}}, "run.timeout", "90s"),
        ({"pod": {"env": [{"name": "PATH", "value": "x"}]}}, "pod.env.0.name", "choose another"),
    ],
)
async def test_apiserver_refusals_become_api_errors(testbed, spec, field, word):
    status, found, _ = await testbed.call("POST", "/v1/projects", {"name": "crew", **spec})
    assert (status, found["error"]["code"]) == (400, "invalid_request")
    assert found["error"]["details"]["field"] == field
    assert word in found["error"]["message"]


async def test_variables_are_stored_in_a_secret_and_never_shown(testbed):
    await testbed.data("POST", "/v1/projects", {"name": "crew"})
    assert await testbed.data("GET", "/v1/projects/crew/env") == []
    status, found, _ = await testbed.call(
        "PUT", "/v1/projects/crew/env", {"variables": {"TIDE": "swordfish", "MOON": "", "OLD": "x"}}
    )
    assert status == 200 and "swordfish" not in str(found)
    assert [item["name"] for item in found["data"]] == ["MOON", "OLD", "TIDE"]
    assert found["pagination"]["total"] == 3
    secret = await testbed.kube.get(SECRET, "crew-env")
    assert base64.b64decode(secret["data"]["TIDE"]) == b"swordfish"
    assert secret["metadata"]["labels"]["crewyard.dev/project"] == "crew"
    assert secret["metadata"]["ownerReferences"][0]["name"] == "crew"

    before = {item["name"]: item["updated_at"] for item in found["data"]}
    await asyncio.sleep(1.1)
    after = await testbed.data(
        "PUT", "/v1/projects/crew/env", {"variables": {"TIDE": "swordfish", "MOON": "full"}}
    )
    after = {item["name"]: item["updated_at"] for item in after}
    assert after.keys() == {"TIDE", "MOON"}
    assert after["TIDE"] == before["TIDE"] and after["MOON"] > before["MOON"]

    one = await testbed.data("PUT", "/v1/projects/crew/env/STAR", {"value": "north"})
    assert one["name"] == "STAR" and set(one) == {"name", "updated_at"}
    assert (await testbed.call("DELETE", "/v1/projects/crew/env/TIDE"))[0] == 204
    assert (await testbed.call("DELETE", "/v1/projects/crew/env/TIDE"))[0] == 204
    assert [item["name"] for item in await testbed.data("GET", "/v1/projects/crew/env")] == ["MOON", "STAR"]


@pytest.mark.parametrize("name", ["CREWYARD_TOKEN", "PATH", "HOME", "PYTHONPATH", "1ST", "a-b", "A\n", ""])
async def test_reserved_variable_names_are_refused(testbed, name):
    await testbed.data("POST", "/v1/projects", {"name": "crew"})
    status, found, _ = await testbed.call("PUT", "/v1/projects/crew/env", {"variables": {name: "swordfish"}})
    assert (status, found["error"]["code"]) == (400, "invalid_request")
    assert found["error"]["details"]["field"] == "variables"
    assert "swordfish" not in str(found)
    assert await testbed.kube.get(SECRET, "crew-env") is None


async def test_concurrent_writers_lose_no_variable(testbed):
    await testbed.data("POST", "/v1/projects", {"name": "crew"})
    names = ["A", "B", "C"]
    await asyncio.gather(*(testbed.data("PUT", f"/v1/projects/crew/env/{n}", {"value": n}) for n in names))
    assert [item["name"] for item in await testbed.data("GET", "/v1/projects/crew/env")] == names


async def test_variable_set_with_kubectl_is_listed(testbed):
    await testbed.data("POST", "/v1/projects", {"name": "crew"})
    await testbed.kube.create(SECRET, {"metadata": {"name": "crew-env"}, "stringData": {"TIDE": "high"}})
    (item,) = await testbed.data("GET", "/v1/projects/crew/env")
    assert item["name"] == "TIDE" and item["updated_at"].endswith("Z")


HELD = {
    "source": {"git": {"url": "https://git.example.com/a", "secretRef": {"name": "git"}}},
    "github": {"repository": "team/a", "secretRef": {"name": "github"}},
}


async def deploy_key(testbed, *projects):
    """Return the header of a key with the scope deploy."""
    body = {"name": "deployer", "scopes": ["deploy"], "projects": list(projects) or None}
    key = (await testbed.data("POST", "/v1/api-keys", body))["key"]
    return {"headers": {"Authorization": f"Bearer {key}"}}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"source": {"git": {"url": "https://evil.example.com/a"}}}, "source.git.url"),
        ({"source": {"git": {"url": "https://git.example.com/a/"}}}, "source.git.url"),
        ({"github": {"repository": "team/b"}}, "github.repository"),
    ],
)
async def test_destination_of_a_secret_needs_admin(testbed, body, field):
    deployer = await deploy_key(testbed)
    for name, spec in (("held", HELD), ("bare", {"source": {"git": {"url": "https://git.example.com/a"}}})):
        await testbed.kube.create(PROJECT, {"metadata": {"name": name}, "spec": spec})
        await visible(testbed, name)
    status, found, _ = await testbed.call("PATCH", "/v1/projects/held", body, **deployer)
    assert (status, found["error"]["details"]) == (403, {"field": field, "required_scope": "admin"})
    allowed = [
        ("held", {"source": {"git": {"url": "https://git.example.com/a", "path": "b"}}}, deployer),
        ("held", {"github": {"repository": "team/a"}}, deployer),
        ("held", body, {}),
        ("held", {"source": None}, deployer),
        *([("bare", body, deployer)] if "source" in body else []),
    ]
    for project, sent, who in allowed:
        status, found, _ = await testbed.call("PATCH", f"/v1/projects/{project}", sent, **who)
        assert status == 200, (sent, found)


async def visible(testbed, name):
    async with asyncio.timeout(180):
        while (await testbed.call("GET", f"/v1/projects/{name}"))[0] != 200:
            await asyncio.sleep(0.02)


async def test_a_permission_is_decided_on_the_object_not_on_an_older_row(testbed, monkeypatch):
    """The watch lags: the row is without the Secret that the object has."""
    deployer = await deploy_key(testbed)
    good, evil = "http://good.example/x.git", "http://evil.example/x.git"
    await testbed.data("POST", "/v1/projects", {"name": "alpha"})
    row = await testbed.store.projects.get("alpha")

    async def old(name):
        return row if name == "alpha" else None

    monkeypatch.setattr(testbed.store.projects, "get", old)
    source = {"git": {"url": good, "secretRef": {"name": "git"}}}
    await testbed.kube.patch(PROJECT, "alpha", {"spec": {"source": source}})
    sent = {"source": {"git": {"url": evil}}}
    assert (await testbed.call("PATCH", "/v1/projects/alpha", sent, **deployer))[0] == 403
    assert (await testbed.kube.get(PROJECT, "alpha"))["spec"]["source"] == source


async def test_a_secret_is_never_named_next_to_an_address_that_another_call_set(testbed, monkeypatch):
    """Between the decision and the patch the Secret is named: the patch is refused, and decided again."""
    deployer = await deploy_key(testbed)
    good, evil = "http://good.example/x.git", "http://evil.example/x.git"
    await testbed.data("POST", "/v1/projects", {"name": "alpha"})
    source, patch, named = {"git": {"url": good, "secretRef": {"name": "git"}}}, testbed.kube.patch, []

    async def patch_late(kind, name, body, *more):
        if not named:
            named.append(True)
            await patch(PROJECT, "alpha", {"spec": {"source": source}})
        return await patch(kind, name, body, *more)

    monkeypatch.setattr(testbed.kube, "patch", patch_late)
    sent = {"source": {"git": {"url": evil}}}
    assert (await testbed.call("PATCH", "/v1/projects/alpha", sent, **deployer))[0] == 403
    assert named and (await testbed.kube.get(PROJECT, "alpha"))["spec"]["source"] == source


async def test_a_change_meets_conflicts_a_bounded_number_of_times(testbed, monkeypatch):
    await testbed.data("POST", "/v1/projects", {"name": "alpha"})
    patch, tries = testbed.kube.patch, []

    async def patch_late(kind, name, body, *more):
        tries.append(name)
        await patch(PROJECT, "alpha", {"metadata": {"annotations": {"touched": str(len(tries))}}})
        return await patch(kind, name, body, *more)

    monkeypatch.setattr(testbed.kube, "patch", patch_late)
    status, found, _ = await testbed.call("PATCH", "/v1/projects/alpha", {"pod": None})
    assert (status, found["error"]["code"], len(tries)) == (409, "conflict", MAX_ATTEMPTS)


async def test_variables_of_another_owner_are_neither_shown_nor_replaced(testbed):
    """A Secret that lies there, of an earlier project of this name."""
    owner = {"apiVersion": "crewyard.dev/v1alpha1", "kind": "Project", "name": "prod", "uid": "before"}
    await testbed.data("POST", "/v1/projects", {"name": "prod"})
    await testbed.data("POST", "/v1/projects", {"name": "made"})
    for name, metadata in (
        ("prod", {"ownerReferences": [owner]}),
        ("made", {"labels": {"crewyard.dev/project": "other"}}),
    ):
        # The garbage collector deletes a Secret whose owner was deleted; a finalizer keeps it for the test.
        metadata = {"name": f"{name}-env", "finalizers": ["crewyard.dev/test"], **metadata}
        await testbed.kube.create(SECRET, {"metadata": metadata, "stringData": {"DB": "swordfish"}})
        path = f"/v1/projects/{name}/env"
        for method, where, body in (
            ("GET", path, None),
            ("PUT", path, {"variables": {"A": "1"}}),
            ("PUT", f"{path}/A", {"value": "1"}),
            ("DELETE", f"{path}/DB", None),
        ):
            status, found, _ = await testbed.call(method, where, body)
            assert (status, found["error"]["code"]) == (409, "conflict"), (method, where)
        stored = await testbed.kube.get(SECRET, f"{name}-env")
        assert set(stored["data"]) == {"DB"}
        await testbed.kube.patch(SECRET, f"{name}-env", {"metadata": {"finalizers": None}})
