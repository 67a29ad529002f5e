"""Settings of a build pod: its environment."""

import pytest

from build.json_object import BuildSettingsInvalid
from build.settings import ArchiveSource, GitSource, read_settings
from tests.unit.build.environment import BUILD, environment


def test_all_settings() -> None:
    settings = read_settings(environment())
    assert settings.repository == "registry:5000/crews/demo"
    assert settings.internal_url == "http://api:8080"
    assert settings.source == GitSource("https://git.example.org/x", "c" * 40, "")
    assert list(settings.base_images) == ["3.12", "3.11"]
    assert (settings.limits.context_bytes, settings.limits.entries, settings.limits.ratio) == (5, 7, 100)
    assert settings.dependencies_key is None


def test_upload() -> None:
    source = {"archive": {"upload": "upl_1", "sha256": "a" * 64}}
    assert read_settings(environment({**BUILD, "source": source})).source == ArchiveSource("upl_1", "a" * 64)


def test_upload_without_sha256() -> None:
    source = {"archive": {"upload": "upl_1"}}
    assert read_settings(environment({**BUILD, "source": source})).source == ArchiveSource("upl_1")


def test_images_of_crews_are_in_every_namespace_of_the_installation() -> None:
    assert read_settings(environment()).crews == ("registry:5000/crews/",)
    several = read_settings(environment({**BUILD, "namespaces": ["team-a", "crews"]}))
    assert several.crews == ("registry:5000/crews/", "registry:5000/team-a/")


def test_repr_hides_secrets() -> None:
    assert "very-secret" not in repr(read_settings(environment()))


@pytest.mark.parametrize(
    ("build", "part"),
    [
        ("{", "not JSON"),
        ("[]", "must be a JSON object"),
        ({**BUILD, "project": ""}, "CREWYARD_BUILD.project"),
        ({**BUILD, "registry": {}}, "CREWYARD_BUILD.registry.prefix"),
        ({**BUILD, "source": {"git": {"url": "x"}}}, "CREWYARD_BUILD.source.git.commit"),
        ({**BUILD, "source": {}}, "CREWYARD_BUILD.source.archive"),
    ],
)
def test_error_names_the_missing_key(build: object, part: str) -> None:
    with pytest.raises(BuildSettingsInvalid, match=part.replace(".", r"\.")):
        read_settings(environment(build))
