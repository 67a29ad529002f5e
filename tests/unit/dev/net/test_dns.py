"""Host names of Services, and their removal."""

import http.client
import time
from typing import Any

import pytest

from dev.cluster.kube_client import KubeApiError
from dev.net import service_names
from dev.net.dns import service_hosts
from dev.net.service_names import apply_event


def service(name: str, *addresses: str, namespace: str = "crews") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}"},
        "spec": {"clusterIPs": list(addresses)},
    }


def test_every_address_of_a_service_has_its_full_name() -> None:
    text = service_hosts([service("b", "10.214.0.9"), service("a", "10.214.0.8", "fd00::8")])
    assert text.splitlines() == [
        "10.214.0.8 a.crews.svc.cluster.local",
        "10.214.0.9 b.crews.svc.cluster.local",
        "fd00::8 a.crews.svc.cluster.local",
    ]


def test_headless_and_unassigned_services_have_no_name() -> None:
    assert service_hosts([service("h", "None"), service("e"), {"metadata": {}, "spec": None}]) == ""


def test_an_invalid_address_is_an_error() -> None:
    with pytest.raises(ValueError, match="evil"):
        service_hosts([service("x", "10.0.0.1 evil")])


def test_events_add_change_and_remove() -> None:
    services: dict[str, dict[str, Any]] = {}
    assert apply_event(services, {"type": "ADDED", "object": service("a", "10.214.0.8")})
    assert apply_event(services, {"type": "MODIFIED", "object": service("a", "10.214.0.9")})
    assert service_hosts(services.values()) == "10.214.0.9 a.crews.svc.cluster.local\n"
    assert apply_event(services, {"type": "DELETED", "object": service("a", "10.214.0.9")})
    assert services == {}


def test_a_bookmark_changes_nothing() -> None:
    assert not apply_event({}, {"type": "BOOKMARK", "object": {"metadata": {}}})


def test_an_error_event_ends_the_watch() -> None:
    with pytest.raises(KubeApiError) as caught:
        apply_event({}, {"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}})
    assert caught.value.status == 410


@pytest.mark.parametrize(
    "error", [http.client.IncompleteRead(b""), OSError(28, "disk full"), ProcessLookupError(3, "gone")]
)
def test_the_process_continues_after_any_error(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    results = [error, SystemExit("listed again")]

    def list_and_watch(*_: object) -> None:
        raise results.pop(0)

    monkeypatch.setattr(service_names, "HttpKubeApi", lambda kubeconfig: None)
    monkeypatch.setattr(service_names, "list_and_watch", list_and_watch)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with pytest.raises(SystemExit, match="listed again"):
        service_names.main("/nowhere")
