"""Use of an installation: deploy by upload, run, wait for the end."""

from typing import Any

from crewyard import Client
from tests.cluster.install.installation import until


def deploy(client: Client, project: str, content: bytes) -> str:
    """Deploy an archive by upload; return the id once it is active."""
    ticket = client.announce_upload(project, len(content))
    client.send_upload(ticket, lambda: iter([content]))
    made = client.create_deployment(project, build_context_url=ticket["build_context_url"], message="First")
    log = "".join(client.follow_build_log(made["id"]))
    found = until(lambda: _settled(client, made["id"]))
    assert found["status"] == "active", (found, log)
    return made["id"]


def _settled(client: Client, deployment: str) -> Any:
    found = client.get_deployment(deployment)
    return found if found["status"] not in ("pending", "building") else None


def wait_ended(client: Client, run: str) -> Any:
    """Return the run once it has ended."""
    return until(lambda: found if (found := client.get_run(run))["completed_at"] else None)
