"""NO_PROXY covers the cluster."""

import io
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dev.current.current import CurrentContextCluster
from dev.images import base_image
from dev.kind import configuration
from dev.kind.kind import KindCluster
from dev.net import proxy_bypass
from dev.progress import StepProgress
from dev.settings import POD_NETWORK, SERVICE_NETWORK, Settings


def test_without_a_proxy_nothing_is_set() -> None:
    assert proxy_bypass.variables({"NO_PROXY": "x", "HTTPS_PROXY": ""}) == {}


@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "all_proxy"])
def test_existing_exceptions_stay_and_the_cluster_is_added_once(name: str) -> None:
    first = proxy_bypass.variables(
        {name: "http://proxy.example.org:3128", "no_proxy": "intranet, .example.org"}
    )
    assert first["NO_PROXY"] == first["no_proxy"]
    places = first["NO_PROXY"].split(",")
    assert places[:2] == ["intranet", ".example.org"]
    assert {POD_NETWORK, SERVICE_NETWORK, "127.0.0.1", ".svc", ".crewyard.internal"} <= set(places)
    assert proxy_bypass.variables({name: "x", **first}) == first


def test_the_base_image_gets_no_proxy_with_the_proxy() -> None:
    inherited = {"HTTPS_PROXY": "http://proxy.example.org:3128"}
    image = base_image.config({**inherited, **proxy_bypass.variables(inherited)})
    assert any(str(entry).startswith("NO_PROXY=127.0.0.1,") for entry in image["Env"])  # type: ignore[attr-defined]


def test_kinds_nodes_pull_from_the_registry_without_the_proxy() -> None:
    pulled = urlsplit(configuration.hosts_file().split('"')[1]).hostname
    entries = proxy_bypass.variables({"HTTP_PROXY": "http://proxy.example.org:3128"})["NO_PROXY"].split(",")
    assert pulled in entries


@pytest.mark.parametrize("kind_of_cluster", [KindCluster, CurrentContextCluster])
def test_a_shell_reaches_the_service_without_the_proxy(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind_of_cluster: Callable[..., KindCluster | CurrentContextCluster],
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    inherited = {"HTTP_PROXY": "http://proxy.example.org:3128"}
    values = kind_of_cluster(Settings(tmp_path), inherited, StepProgress(io.StringIO())).env()
    assert urlsplit(values["CREWYARD_URL"]).hostname in values["NO_PROXY"].split(",")
