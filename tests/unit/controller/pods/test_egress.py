"""Proxies and authorities of an installation, in build pods and nowhere else."""

import json
from dataclasses import replace

import pytest

from controller.config import ConfigError, parse
from controller.deployment import pod
from controller.deployment.build_result import DependenciesMissing
from controller.images import pod as prune_pod
from controller.pods.egress import PodEgress, parse_proxies
from controller.run import pod as run_pod
from tests.unit.controller.test_config import GOOD

PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
PROXIES = {"http": "http://proxy:3128", "https": "http://proxy:3129", "except": "10.0.0.0/8, .example.com"}
NOW = 1_800_000_000
MISSING = DependenciesMissing("key", "image")
INSTALLABLE = DependenciesMissing("key", "image", "ab" * 32, "sha256:" + "cd" * 32)


@pytest.fixture
def behind(config):
    return replace(config, egress=PodEgress(parse_proxies(json.dumps(PROXIES)), PEM))


def env(container):
    return {entry["name"]: entry.get("value") for entry in container.get("env", ())}


def test_builds_get_the_proxy_and_runs_do_not(make, behind):
    project, deployment = make.project(), make.deployment(built=False)
    assemble = pod.assemble(deployment, project, "a", 1, behind, NOW)["spec"]
    dependencies = pod.dependencies(deployment, project, "d", 2, MISSING, behind, NOW)["spec"]
    removal = prune_pod.build(project, prune_pod.ImageRemoval({}, ("image",), ()), 1, behind)["spec"]
    source, kaniko = dependencies["initContainers"]
    for ours in (*assemble["containers"], source, *dependencies["containers"], *removal["containers"]):
        assert ours["command"][:5] == ["python3", "-m", "egress.ca_bundle", "python3", "-m"]
        found = env(ours)
        assert (found["CREWYARD_CA"], found["HTTPS_PROXY"]) == (PEM, "http://proxy:3129")
        assert found["NO_PROXY"] == "localhost,127.0.0.1,.svc,.cluster.local,10.0.0.0/8,.example.com"
    assert env(kaniko)["SSL_CERT_FILE"] == "/workspace/ca.crt" and "CREWYARD_CA" not in env(kaniko)
    assert "--build-arg=HTTP_PROXY=http://proxy:3128" in kaniko["args"]
    in_base = pod.dependencies(deployment, project, "d", 2, INSTALLABLE, behind, NOW)["spec"]
    install = env(in_base["initContainers"][1])
    assert install["http_proxy"] == install["HTTP_PROXY"] == "http://proxy:3128"
    assert "CREWYARD_CA" not in install
    assert [volume["name"] for volume in dependencies["volumes"]] == ["workspace"]
    run = run_pod.build(make.run(), project, make.deployment(), frozenset(), behind, NOW)["spec"]
    assert not {"CREWYARD_CA", "HTTP_PROXY", "HTTPS_PROXY"} & set(env(run["containers"][0]))


def test_unset_proxy_adds_nothing(make, config):
    project, deployment = make.project(), make.deployment(built=False)
    body = pod.dependencies(deployment, project, "d", 2, MISSING, config, NOW)
    _, kaniko = body["spec"]["initContainers"]
    assert "env" not in kaniko and "--build-arg" not in " ".join(kaniko["args"])
    assert body["spec"]["containers"][0]["command"][:3] == ["python3", "-m", "build"]
    assert "PROXY" not in json.dumps(body)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("CREWYARD_BUILD_PROXIES", "[]", "JSON object"),
        ("CREWYARD_BUILD_PROXIES", '{"https": 1}', "JSON object"),
        ("CREWYARD_BUILD_PROXIES", '{"ftp": "http://proxy"}', "'ftp'"),
        ("CREWYARD_BUILD_PROXIES", '{"https": "proxy:3128"}', "not an http URL"),
        ("CREWYARD_BUILD_PROXIES", '{"https": "http://user:pass@proxy:3128"}', "https: builds can read"),
        ("CREWYARD_BUILD_PROXIES", '{"http": "http://user@proxy:3128"}', "http: builds can read"),
        ("CREWYARD_BUILD_PROXIES", '{"http": "user:pass@proxy:3128"}', "http: builds can read"),
        ("CREWYARD_CA", "nonsense", "no certificate"),
    ],
)
def test_invalid_setting_error_names_it(name, text, words):
    with pytest.raises(ConfigError, match=name) as refused:
        parse({**GOOD, name: text})
    assert words in str(refused.value) and "pass@" not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "variables"),
    [
        ({"http": "", "https": "", "except": "10.0.0.0/8"}, {}),
        ({"except": "10.0.0.0/8"}, {}),
        (
            {"https": "https://proxy"},
            {"HTTPS_PROXY": "https://proxy", "NO_PROXY": "localhost,127.0.0.1,.svc,.cluster.local"},
        ),
        (
            {"http": "http://proxy", "except": " a ,,b"},
            {"HTTP_PROXY": "http://proxy", "NO_PROXY": "localhost,127.0.0.1,.svc,.cluster.local,a,b"},
        ),
    ],
)
def test_proxies_of_the_installation_become_variables(settings, variables):
    assert parse_proxies(json.dumps(settings)) == variables


def test_build_containers_get_proxies_and_authorities():
    proxies = {"HTTP_PROXY": "http://proxy", "NO_PROXY": "a,b"}
    named = [{"name": "HTTP_PROXY", "value": "http://proxy"}, {"name": "NO_PROXY", "value": "a,b"}]
    both, plain = PodEgress(proxies, PEM), PodEgress(proxies)
    assert both.env() == [*named, {"name": "CREWYARD_CA", "value": PEM}]
    assert both.kaniko_env("/ca") == [*named, {"name": "SSL_CERT_FILE", "value": "/ca/ca.crt"}]
    assert both.command(["run"]) == ["python3", "-m", "egress.ca_bundle", "run"]
    assert plain.env() == plain.kaniko_env("/ca") == named
    assert plain.command(["run"]) == ["run"]
    # apt and curl read the lower case only.
    arguments = [
        *("--build-arg=HTTP_PROXY=http://proxy", "--build-arg=http_proxy=http://proxy"),
        *("--build-arg=NO_PROXY=a,b", "--build-arg=no_proxy=a,b"),
    ]
    assert both.kaniko_arguments() == plain.kaniko_arguments() == arguments
