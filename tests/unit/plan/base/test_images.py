"""Images that a crew's Dockerfile may take."""

import pytest

from plan.base.images import ImageRules, full_reference, with_allowed_images
from plan.errors import PlanError
from plan.make import make_plan

DIGEST = "sha256:" + "0" * 64
HUB = ImageRules({"3.11": "python:3.11-slim"}, crews=("registry.test:5000/crews/",))
OWN = ImageRules(
    {"3.11": f"registry.test:5000/library/python@{DIGEST}", "3.12": "registry.test:5000/library/python:3.12"},
    ("ghcr.io/acme/", "quay.io", "registry.test:5000", "own:5000", "localhost", "acme"),
    ("registry.test:5000/crews/", "registry.test:5000/team-b/"),
)


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("python", "docker.io/library/python"),
        ("python:3.11", "docker.io/library/python:3.11"),
        ("acme/base", "docker.io/acme/base"),
        ("index.docker.io/acme/base", "docker.io/acme/base"),
        ("ghcr.io/acme/base:1", "ghcr.io/acme/base:1"),
        ("localhost/x", "localhost/x"),
        ("registry:5000/x", "registry:5000/x"),
    ],
)
def test_full_reference(image: str, full: str) -> None:
    assert full_reference(image) == full


@pytest.mark.parametrize(
    ("rules", "image", "taken"),
    [
        (HUB, "python:3.12", "python:3.12"),
        (HUB, "python:3.12-slim", "python:3.12-slim"),
        (HUB, "debian:12", "debian:12"),
        (HUB, f"docker.io/library/debian:12@{DIGEST}", f"docker.io/library/debian:12@{DIGEST}"),
        (HUB, "acme/python:3.12", None),
        (HUB, "ghcr.io/library/python:3.12", None),
        (HUB, "docker.io.example.com/library/python", None),
        (OWN, "python:3.11-slim", f"registry.test:5000/library/python@{DIGEST}"),
        (OWN, "python:3.12-slim", "registry.test:5000/library/python:3.12"),
        (OWN, "python:3.11-alpine", None),
        (OWN, "registry.test:5000/library/node:22", "registry.test:5000/library/node:22"),
        (OWN, "ghcr.io/acme/base/one:1", "ghcr.io/acme/base/one:1"),
        (OWN, "ghcr.io/acmes/base:1", None),
        (OWN, "quay.io/any/base", "quay.io/any/base"),
        (OWN, "quay.io.example.com/any/base", None),
        (OWN, "own:5000/any/base", "own:5000/any/base"),
        (OWN, "own:50001/any/base", None),
        (OWN, "localhost/any/base", "localhost/any/base"),
        (OWN, "acme", "acme"),
        # Never the image of a crew, by any name.
        (OWN, "registry.test:5000/crews/other:deps-1", None),
        (OWN, "registry.test:5000/team-b/other:deps-1", None),
        (OWN, "registry.test:5000/library/../crews/other:deps-1", None),
        (OWN, "registry.test:5000/library//crews", None),
        (OWN, "registry.test:5000/library/.", None),
        (OWN, "", None),
    ],
)
def test_rules(rules: ImageRules, image: str, taken: str | None) -> None:
    assert rules.resolve(image) == taken


def test_a_message_lists_what_is_allowed_with_its_registry() -> None:
    assert OWN.shown() == (
        "registry.test:5000/library/*",
        "ghcr.io/acme/…",
        "quay.io/…",
        "registry.test:5000/…",
        "own:5000/…",
        "localhost/…",
        "docker.io/library/acme…",
    )


def test_images_of_a_dockerfile() -> None:
    text = (
        "FROM python:3.11-slim AS build\nFROM python:3.11-slim\nCOPY --from=ghcr.io/acme/tool /bin/x /bin/\n"
    )
    files = {"main.py": b"def kickoff(): ...\n", "Dockerfile": text.encode()}
    base = make_plan(files, None, ["3.11"], dockerfile="Dockerfile").declaration.base
    assert base is not None and base.images == ("python:3.11-slim", "ghcr.io/acme/tool")
    taken = with_allowed_images(base, OWN)
    assert taken.images == (f"registry.test:5000/library/python@{DIGEST}", "ghcr.io/acme/tool")
    assert [note.partition(":")[0] for note in taken.notes] == ["Dockerfile line 1", "Dockerfile line 2"]
    with pytest.raises(PlanError) as raised:
        with_allowed_images(base, HUB)
    assert (
        "Dockerfile line 3: this installation does not allow the image ghcr.io/acme/tool"
        in raised.value.message
    )
    assert "docker.io/library/*" in raised.value.message
    assert "CREWYARD_DOCKERFILE_IMAGES" in raised.value.hint
