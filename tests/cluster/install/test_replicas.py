"""Two replicas by the chart, with PostgreSQL, a bucket, Redis, a web proxy and a custom CA."""

import json
import os
import socket
from contextlib import ExitStack

import pytest
import yaml

from dev.settings import BRIDGE_ADDRESS, REGISTRY_HOST
from tests.cluster.install.installation import CHART, egress_rule, kubectl
from tests.cluster.install.relay import relay, to_file, to_port
from tests.cluster.install.usage import deploy, wait_ended
from tests.cluster.install.webproxy import web_proxy
from tests.e2e.upload_project import archive
from tests.testbed.certificates import certificate
from tests.unit.api.ratelimit import redis_server
from tests.unit.api.store.conftest import postgres, s3_server
from tests.unit.api.store.postgres_server import PASSWORD

pytestmark = pytest.mark.nightly

__all__ = ["postgres", "s3_server"]

CREW = {
    "requirements.txt": "idna==3.10\n",
    "main.py": """
import idna
from pathlib import Path


def kickoff(inputs):
    Path("artifacts/name.txt").write_bytes(idna.encode(inputs["name"]))
    return {"encoded": idna.encode(inputs["name"]).decode()}
""",
}


@pytest.fixture
def redis():
    yield from redis_server.serving()


def key_count(redis) -> str:
    """Return the Redis response to DBSIZE."""
    with socket.create_connection(("127.0.0.1", redis.port), 10) as connection:
        connection.sendall(f"AUTH {redis_server.PASSWORD}\r\nDBSIZE\r\n".encode())
        answer = b""
        while answer.count(b"\r\n") < 2:
            answer += connection.recv(1024)
    return answer.decode().split("\r\n")[1]


# Takes minutes on an idle machine; the timeouts are for a busy one.
def test_replicas_share_stores_and_builds_use_the_proxy(installation, postgres, s3_server, redis):
    """Slow: installs the chart with all its stores and builds a crew through a proxy."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")):
        pytest.skip("this machine is behind a proxy itself, which the one of this test does not know")
    bucket = s3_server.new()
    url = postgres.database()
    with ExitStack() as stack:
        database = stack.enter_context(relay(lambda: to_file(f"{postgres.directory}/.s.PGSQL.5432")))
        objects = stack.enter_context(relay(lambda: to_port(s3_server.port)))
        counters = stack.enter_context(relay(lambda: to_port(redis.port)))
        proxy = stack.enter_context(web_proxy())

        kubectl("create", "namespace", installation.namespace)
        database_name = url.partition("@/")[2].partition("?")[0]
        address_and_name = f"{BRIDGE_ADDRESS}:{database}/{database_name}"
        installation.secret(
            "crewyard-database", url=f"postgresql+asyncpg://crewyard:{PASSWORD}@{address_and_name}"
        )
        endpoint = {"AWS_ENDPOINT_URL": f"http://{BRIDGE_ADDRESS}:{objects}"}
        installation.secret("crewyard-bucket", **{**s3_server.environment, **endpoint})
        shared = f"redis://:{redis_server.PASSWORD}@{BRIDGE_ADDRESS}:{counters}/0"
        installation.secret("crewyard-rate-limit", url=shared)
        trusted = certificate("authority.example.com").text
        kubectl(
            "-n", installation.namespace, "create", "configmap", "own", f"--from-literal=ca.crt={trusted}"
        )

        address = f"http://{BRIDGE_ADDRESS}:{proxy.server_port}"
        known = installation.values()["networkPolicies"]
        builds = [*known["builds"], egress_rule(proxy.server_port)]
        installation.extra_values = {
            **yaml.safe_load((CHART / "values-replicas.yaml").read_text()),
            "bucket": {"url": f"s3://{bucket.name}", "existingSecret": "crewyard-bucket"},
            "proxy": {"http": address, "https": address, "except": f"{BRIDGE_ADDRESS},{REGISTRY_HOST}"},
            "ca": {"configMap": "own"},
            "networkPolicies": {**known, "builds": builds},
        }
        installation.install()
        assert kubectl("-n", installation.namespace, "get", "pvc", "-o", "name") == ""
        listed = kubectl(
            "-n", installation.namespace, "get", "pods", "-l", "app.kubernetes.io/component=api", "-o", "name"
        ).split()
        assert len(listed) == 2
        key = installation.create_key()
        with installation.client(key, listed[0]) as client:
            client.create_project("names")
            deploy(client, "names", archive(CREW))
            run = client.start_run("names", {"name": "bücher"})["id"]
            assert wait_ended(client, run)["output"] == {"encoded": "xn--bcher-kva"}
        with installation.client(key, listed[1]) as client:
            assert [item["id"] for item in client.list_runs().items] == [run]
            with client.open_artifact(run, "name.txt") as content:
                assert b"".join(content) == b"xn--bcher-kva"
        assert any(path.is_file() for path in bucket.rglob("*"))
        assert int(key_count(redis).removeprefix(":")) > 0
        # uv used the proxy; cluster-internal requests did not.
        assert proxy.hosts and not {BRIDGE_ADDRESS, REGISTRY_HOST} & set(proxy.hosts)
        pods = kubectl("-n", installation.crews, "get", "pods", "-o", "json")
        assert "crewyard-authorities" not in json.dumps(
            [item for item in json.loads(pods)["items"] if item["metadata"]["name"].startswith("run-")]
        )
        written = kubectl(
            "-n", installation.namespace, "exec", listed[0], "--", "cat", "/tmp/crewyard-authorities.crt"
        )
        assert trusted.strip() in written and written.count("BEGIN CERTIFICATE") > 1
