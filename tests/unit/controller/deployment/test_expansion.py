"""The kubelet puts variables into the values of later ones, `$(NAME)`, `$$` being one `$`: not into ours."""

import json
import re

import pytest

from controller.deployment import pod
from controller.deployment.build_result import DependenciesMissing

NOW = 1_800_000_000
MISSING = DependenciesMissing("key", "image:deps")
TOKEN = "$(CREWYARD_TOKEN)"
COMMIT = "1" * 40
SOURCES = {
    "an address": ({"git": {"url": f"https://evil.example.org/{TOKEN}/x.git", "commit": COMMIT}}, None),
    "a path": ({"git": {"url": "https://a.example.org/x", "commit": COMMIT, "path": TOKEN}}, None),
    "a crew": ({"archive": {"upload": "upl_1"}}, TOKEN),
    "an upload": ({"archive": {"upload": f"upl_{TOKEN}"}}, None),
    "signs of money": ({"archive": {"upload": "upl_1"}}, "$ $$ $$$(A) $(B"),
}


def kubelet(env):
    """What the container gets, by Kubernetes' rules; what comes from elsewhere is a word of its own."""
    known: dict[str, str] = {}

    def one(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return known.get(found[1], found[0])

    for entry in env:
        known[entry["name"]] = re.sub(r"\$\$|\$\(([^)]*)\)", one, entry.get("value", f"<{entry['name']}>"))
    return known


@pytest.mark.parametrize("what", SOURCES)
def test_source_cannot_reference_the_build_token(make, secured, what):
    source, crew = SOURCES[what]
    deployment = make.deployment(built=False, source=source, **({"crew": crew} if crew else {}))
    project = make.project(source={"git": {"url": "https://a.example.org/x", "secretRef": {"name": "git"}}})
    for body in (
        pod.assemble(deployment, project, "dep-a-a1", 1, secured, NOW),
        pod.dependencies(deployment, project, "dep-a-d1", 2, MISSING, secured, NOW),
    ):
        for container in (*body["spec"].get("initContainers", ()), *body["spec"]["containers"]):
            assert not any("$" in word for word in container.get("args", ()))
            if container["name"] == "kaniko":
                continue
            variables = kubelet(container["env"])
            request = json.loads(variables["CREWYARD_BUILD"])
            assert request["source"] == (
                {"git": {"path": "", **source["git"]}} if "git" in source else source
            )
            assert request["crew"] == crew
            assert variables["CREWYARD_TOKEN"] not in variables["CREWYARD_BUILD"]
