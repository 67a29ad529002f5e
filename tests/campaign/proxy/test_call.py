"""Requests of every shape that the service sends."""

import pytest

from tests.campaign.proxy.call import ProxiedRequest

RUNS = "/apis/crewyard.dev/v1alpha1/namespaces/crews/runs"


@pytest.mark.parametrize(
    ("method", "path", "query", "verb", "kind", "name"),
    [
        ("GET", RUNS, {}, "list", "runs", ""),
        ("GET", RUNS, {"watch": "true"}, "watch", "runs", ""),
        ("GET", f"{RUNS}/run-a", {}, "get", "runs", "run-a"),
        ("PATCH", f"{RUNS}/run-a/status", {}, "patch", "runs/status", "run-a"),
        ("DELETE", f"{RUNS}/run-a", {}, "delete", "runs", "run-a"),
        ("POST", RUNS, {}, "create", "runs", "run-new"),
        ("GET", "/api/v1/namespaces/crews/pods", {}, "list", "pods", ""),
        ("GET", "/api/v1/namespaces/crews/pods/p/log", {}, "get", "pods/log", "p"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {}, "create", "tokenreviews", "run-new"),
        ("GET", "/api/v1/namespaces/crews", {}, "get", "namespaces", "crews"),
        ("GET", "/version", {}, "get", "", ""),
    ],
)
def test_request_is_parsed(method, path, query, verb, kind, name):
    body = b'{"metadata": {"name": "run-new"}}' if method == "POST" else b""
    call = ProxiedRequest(method, path, query, body)
    assert (call.verb, call.kind, call.name) == (verb, kind, name)
    assert call.writes == (verb in ("create", "patch", "delete"))


def test_body_that_is_not_an_object_is_ignored():
    for body in (b"", b"{", b"[1]"):
        assert ProxiedRequest("POST", RUNS, {}, body).sent == {}
