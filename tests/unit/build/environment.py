"""Environment of a build pod, for tests."""

import json
from typing import Any

BUILD: dict[str, Any] = {
    "namespace": "crews",
    "project": "demo",
    "deployment": "dep-a",
    "source": {"git": {"url": "https://git.example.org/x", "commit": "c" * 40, "path": ""}},
    "crew": None,
    "registry": {"prefix": "registry:5000/", "insecure": True},
    "base_images": {"3.12": "b", "3.11": "a"},
    "network": {"allow": ["10.0.0.0/8"], "deny": []},
    "limits": {"context_bytes": 5, "entries": 7},
}


def environment(build: object = BUILD) -> dict[str, str]:
    return {
        "CREWYARD_INTERNAL_URL": "http://api:8080/",
        "CREWYARD_DEPLOYMENT": "dep-a",
        "CREWYARD_TOKEN": "very-secret",
        "CREWYARD_BUILD": build if isinstance(build, str) else json.dumps(build),
        "GIT_PASSWORD": "very-secret",
        "GIT_IDENTITY": "very-secret",
        "REGISTRY_AUTH": "very-secret",
    }
