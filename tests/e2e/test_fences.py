"""What a build executes of a crew's finds no secret and reaches nobody within."""

import json
import re
import secrets
from pathlib import Path

from tests.e2e.index import Index
from tests.e2e.test_hostile import METADATA, address_of_metadata
from tests.e2e.workshop import tree
from tests.e2e.yard import NAMESPACE
from tests.listeners import listening

CANARY = Path(__file__).parent / "canary"


async def test_what_a_build_executes_finds_nothing(yard, workshops, host_address):
    """Its own canary is found, which shows that it looks; those planted in Secrets are not."""
    own, variable, password = (f"canary-{secrets.token_hex(12)}" for _ in range(3))
    secret = f"e2e-{secrets.token_hex(4)}"
    api = json.loads(
        await yard.kubectl("get", "pods", "-l", "app.kubernetes.io/component=controller", "-o", "json",
                           "--namespace", "crewyard-system", "--field-selector=status.phase=Running")
    )["items"]  # fmt: skip
    with (
        address_of_metadata(),
        listening(METADATA, port=80) as metadata,
        listening(host_address, port=2379) as etcd,
        Index(host_address, "pilot", password, {}) as index,
    ):
        places = {
            "apiserver": (host_address, 6443),
            "apiserver by its service": ("10.214.0.1", 443),
            "kubelet": (host_address, 10250),
            "etcd": (host_address, 2379),
            "metadata": (METADATA, 80),
            "controller, another port": (api[0]["status"]["podIP"], 8080),
            "names": (host_address, 53),
        }
        address = f"http://{host_address}:{index.port}/simple/"
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret, "namespace": NAMESPACE},
            "stringData": {"index-url": address, "username": "pilot", "password": password},
        }
        await yard.kubectl("create", "-f", "-", stdin=json.dumps(body))
        try:
            shop = await workshops(build={"secret_ref": {"name": secret}})
            answer = await yard.call(
                "PUT", f"/v1/projects/{shop.project}/env", {"variables": {"WORD": variable}}
            )
            assert answer.status == 200, answer.body
            files = {**tree(CANARY), "places.json": json.dumps(places), "own.txt": own}
            deployment = await shop.deploy(files)
            done = await shop.ended(deployment)
            log = await shop.log(deployment)
            [told] = re.findall(r"SAW (\{.*\})", log)[:1] or [None]
            assert told is not None, (done, log)
            saw = json.loads(told)
        finally:
            await yard.kubectl("delete", "secret", secret, "--ignore-not-found")
    print(json.dumps(saw, indent=1))
    assert set(saw["secrets"]) == {own}, saw["secrets"]
    assert saw["files"] > 1000
    assert saw["credentials"] == []
    assert [
        name for name in saw["variables"] if re.search("TOKEN|SECRET|PASS|AUTH|CREWYARD|GIT_", name)
    ] == []
    # Containers of one pod do not see one another: Kaniko, the shell that it starts, and pip.
    assert [name for name in saw["processes"] if "build" in name or "pause" in name] == []
    # Names have to be answered; that a knock arrives at all is shown by it.
    assert saw["reached"] == ["names"]
    assert (metadata.visits, etcd.visits) == (0, 0)
