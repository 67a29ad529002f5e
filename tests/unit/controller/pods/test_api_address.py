"""How pods reach the API server: by TLS with pinned authorities where the installation has it."""

from dataclasses import replace

import pytest

from build.settings import read_settings
from controller.config import ConfigError, parse
from controller.deployment import pod as build_pod
from controller.images import pod as prune_pod
from controller.run import pod as run_pod
from runner.pid1.settings import RunnerSettings
from tests.testbed.certificates import TestAuthority
from tests.unit.build.environment import environment
from tests.unit.controller.test_config import GOOD

NOW = 1_800_000_000
PLAIN = "http://crewyard-api.crewyard-system.svc:8080"
TLS = "https://crewyard-api.crewyard-system.svc:8443"
CONTROLLER = "http://crewyard-controller.crewyard-system.svc:9090"
CONTROLLER_TLS = "https://crewyard-controller.crewyard-system.svc:9443"
AUTHORITY = TestAuthority().text
BOTH_OR_NONE = (
    "CREWYARD_INTERNAL_TLS_URL and CREWYARD_INTERNAL_CA or CREWYARD_INTERNAL_CA_FILE belong together: "
    "set the https URL of the API server for pods, and the certificates of the authorities that they accept"
)
WITH_TLS = {"CREWYARD_INTERNAL_TLS_URL": f"{TLS}/", "CREWYARD_INTERNAL_CA": AUTHORITY}


def env(container):
    return {entry["name"]: entry.get("value", "x") for entry in container["env"]}


def run_env(make, config):
    body = run_pod.build(make.run(), make.project(), make.deployment(), frozenset(), config, NOW)
    return env(body["spec"]["containers"][0])


def build_env(make, config):
    body = build_pod.assemble(make.deployment(built=False), make.project(), "a", 1, config, NOW)
    return env(body["spec"]["containers"][0])


@pytest.fixture
def tls(config):
    return replace(config, internal_url=PLAIN, internal_tls_url=TLS, internal_ca=AUTHORITY)


def test_pods_use_plain_http_without_tls(make, config):
    for found in (run_env(make, config), build_env(make, config)):
        assert found["CREWYARD_INTERNAL_URL"] == PLAIN
        assert not {"CREWYARD_INTERNAL_TLS_URL", "CREWYARD_INTERNAL_CA"} & set(found)


def test_runner_prefers_tls_and_earlier_runners_find_the_plain_url(make, tls):
    found = run_env(make, tls)
    settings = RunnerSettings(found | {"CREWYARD_STORAGE_LIMIT": ""})
    assert (settings.url, settings.authorities) == (TLS, AUTHORITY)
    assert found["CREWYARD_INTERNAL_URL"] == PLAIN


def test_runners_get_no_plain_url_once_it_is_off(make, tls):
    """An earlier runner then refuses the certificate, and does not send its token."""
    found = run_env(make, replace(tls, internal_plain=False))
    assert found["CREWYARD_INTERNAL_URL"] == found["CREWYARD_INTERNAL_TLS_URL"] == TLS


def test_builds_use_tls(make, tls):
    settings = read_settings({**build_env(make, tls), "CREWYARD_BUILD": environment()["CREWYARD_BUILD"]})
    assert (settings.internal_url, settings.internal_ca) == (TLS, AUTHORITY)


def test_waiting_pods_are_replaced_after_a_change_of_the_authority(make, tls):
    def template(config):
        return run_pod.template(make.project(), make.deployment(), frozenset(), config, [])

    assert template(tls) != template(replace(tls, internal_ca=TestAuthority().text))


def test_removals_of_images_call_neither_api_server_nor_controller(make, tls):
    body = prune_pod.build(make.project(), prune_pod.ImageRemoval({}, ("image",), ()), 1, tls)
    found = set(env(body["spec"]["containers"][0]))
    assert not {"CREWYARD_TOKEN", "CREWYARD_INTERNAL_URL", "CREWYARD_CONTROLLER_URL"} & found


@pytest.mark.parametrize(("by_tls", "expected"), [("", CONTROLLER), (CONTROLLER_TLS, CONTROLLER_TLS)])
def test_builds_report_to_the_controller_by_tls_where_it_has_it(make, tls, by_tls, expected):
    found = build_env(make, replace(tls, controller_url=CONTROLLER, controller_tls_url=by_tls))
    settings = read_settings({**found, "CREWYARD_BUILD": environment()["CREWYARD_BUILD"]})
    assert (settings.controller_url, settings.internal_ca) == (expected, AUTHORITY)


def test_settings_are_read():
    found = parse({**GOOD, **WITH_TLS, "CREWYARD_INTERNAL_PLAIN": "off"}).api_address
    assert (found.tls_url, found.authorities, found.plain) == (TLS, AUTHORITY, False)
    assert parse(GOOD).api_address.tls_url == ""


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"CREWYARD_INTERNAL_TLS_URL": TLS}, BOTH_OR_NONE),
        ({"CREWYARD_INTERNAL_CA": AUTHORITY}, BOTH_OR_NONE),
        ({**WITH_TLS, "CREWYARD_INTERNAL_TLS_URL": PLAIN}, "is not an https URL"),
        ({**WITH_TLS, "CREWYARD_INTERNAL_CA": "x"}, "CREWYARD_INTERNAL_CA: contains no certificate"),
        ({"CREWYARD_INTERNAL_PLAIN": "off"}, "no pod would reach the API"),
        (
            {"CREWYARD_CONTROLLER_TLS_URL": CONTROLLER_TLS},
            "without CREWYARD_INTERNAL_TLS_URL: set the https URL of the API server",
        ),
        ({**WITH_TLS, "CREWYARD_CONTROLLER_TLS_URL": CONTROLLER_TLS}, "without CREWYARD_INTERNAL_TLS_DIR"),
        ({**WITH_TLS, "CREWYARD_CONTROLLER_TLS_URL": CONTROLLER}, "is not an https URL"),
        ({**WITH_TLS, "CREWYARD_INTERNAL_PLAIN": "maybe"}, "CREWYARD_INTERNAL_PLAIN"),
    ],
)
def test_wrong_settings_are_named(values, named):
    with pytest.raises(ConfigError, match=named):
        parse({**GOOD, **values})
