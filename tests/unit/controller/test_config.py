"""The environment: one error names all that is wrong."""

import json

import pytest

from api.config import parse as api_settings
from controller.config import ConfigError, parse
from controller.observability.health import HealthReadings, problems

GOOD = {
    "CREWYARD_INTERNAL_URL": "http://crewyard-api.crewyard-system.svc:8080/",
    "CREWYARD_TOKEN_KEY": "0123456789abcdef",
    "CREWYARD_SERVICE_IMAGE": "registry/service@sha256:00",
    "CREWYARD_KANIKO_IMAGE": "registry/kaniko:v1.24.0",
    "CREWYARD_BASE_IMAGES": json.dumps({"3.11": "registry/python:3.11-slim"}),
    "CREWYARD_REGISTRY": "registry:5000",
}


def test_minimal_settings_are_accepted():
    config = parse(GOOD)
    assert config.namespace == "crews"
    assert config.internal_url == "http://crewyard-api.crewyard-system.svc:8080"
    assert config.kopf is True
    assert config.plans.of("free").concurrent_runs == 2
    assert "0123456789abcdef" not in repr(config)


def test_both_processes_read_the_same_namespaces():
    variables = {**GOOD, "CREWYARD_NAMESPACES": "team-a, crews,team-b"}
    config = parse(variables)
    assert (
        config.served_namespaces == ("crews", "team-a", "team-b") == api_settings(variables).served_namespaces
    )
    of_team = config.of_namespace("team-a")
    assert (of_team.namespace, of_team.served_namespaces) == ("team-a", ("team-a",))
    assert of_team.repository("demo").endswith("/team-a/demo")
    assert config.of_namespace("crews") is config and parse(GOOD).served_namespaces == ("crews",)
    with pytest.raises(ConfigError, match="CREWYARD_NAMESPACES: 'Team_B' is not the name of a namespace"):
        parse({**GOOD, "CREWYARD_NAMESPACES": "Team_B"})


def test_api_server_and_controller_strip_a_secret_alike():
    place = "postgresql+asyncpg://u:p@h/crewyard"
    variables = {**GOOD, "CREWYARD_TOKEN_KEY": "0123456789abcdef\n", "CREWYARD_DATABASE_URL": f"{place}\n"}
    api = api_settings({**variables, "CREWYARD_RATE_LIMIT_URL": "redis://h:6379\n"})
    assert api.token_key == parse(variables).token_key == "0123456789abcdef"
    assert (api.database_url, api.rate_limit_url) == (place, "redis://h:6379")


def test_all_invalid_settings_are_named_together():
    wrong = {
        **GOOD,
        "CREWYARD_TOKEN_KEY": "short",
        "CREWYARD_OTHER_TOKEN_KEYS": "short",
        "CREWYARD_BASE_IMAGES": "[]",
        "CREWYARD_DOCKERFILE_IMAGES": '["https://ghcr.io/acme/"]',
        "CREWYARD_REGISTRY": "https://registry",
        "CREWYARD_KOPF": "maybe",
        "CREWYARD_CONTROLLER_PORT": "70000",
        "CREWYARD_MAX_BUILDS": "0",
        "CREWYARD_MAX_BUILDS_PER_PROJECT": "many",
        "CREWYARD_RUN_POD_TTL": "2592001",
        "CREWYARD_NET_ALLOW": "10.0.0.0/8, nonsense",
        "CREWYARD_PLANS": '{"free": {}}',
        "CREWYARD_LOG_LEVEL": "loud",
        "CREWYARD_SIGNING_KEY": "not a key",
        "CREWYARD_VERIFICATION_KEYS": "not keys",
    }
    del wrong["CREWYARD_KANIKO_IMAGE"]
    with pytest.raises(ConfigError) as error:
        parse(wrong)
    for name in wrong.keys() - {"CREWYARD_INTERNAL_URL", "CREWYARD_SERVICE_IMAGE"}:
        assert name in str(error.value)
    assert "CREWYARD_KANIKO_IMAGE is not set" in str(error.value)


@pytest.mark.parametrize(
    ("images", "problem"),
    [
        ({"3.11.4": "python"}, "'3.11.4' is not a version of Python such as 3.11"),
        ({"3.11": "python", "python3.12": "python"}, "'python3.12' is not a version of Python such as 3.11"),
        ({"3.11": "python", "3.12": None}, "3.12 has no image; leave it out"),
        ({"3.11": " "}, "3.11 has no image; leave it out"),
    ],
)
def test_base_images_are_images_of_versions_of_python(images, problem):
    with pytest.raises(ConfigError) as error:
        parse({**GOOD, "CREWYARD_BASE_IMAGES": json.dumps(images)})
    assert f"CREWYARD_BASE_IMAGES: {problem}" in str(error.value)


def test_images_are_not_verified_without_a_key():
    assert parse(GOOD).signing is None
    with pytest.raises(ConfigError, match="CREWYARD_VERIFY_IMAGES is on without CREWYARD_SIGNING_KEY"):
        parse({**GOOD, "CREWYARD_VERIFY_IMAGES": "on"})


@pytest.mark.parametrize(("text", "on"), [("off", False), ("false", False), ("0", False), ("on", True)])
def test_kopf_can_be_switched_off(text, on):
    assert parse({**GOOD, "CREWYARD_KOPF": text}).kopf is on


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"resync_age": 61.0, "resync_problem": "Forbidden"}, "Forbidden"),
        ({"oldest_ready": 61.0}, "stuck"),
        ({"missing_watchers": ("runs",)}, "no watch of runs"),
        ({"missing_watchers": ("runs",), "uptime": 5.0}, None),
        ({"resync_age": None, "uptime": 5.0}, None),
        ({"resync_age": None, "resync_problem": "apply the CRDs"}, "apply the CRDs"),
    ],
)
def test_health_requires_watching_and_working(change, words):
    readings = HealthReadings(
        **{
            "resync_age": 3.0,
            "resync_problem": "",
            "oldest_ready": 0.0,
            "missing_watchers": (),
            "uptime": 100.0,
            **change,
        }
    )
    found = problems(readings)
    assert (words is None) == (found == [])
    assert words is None or words in found[0]
