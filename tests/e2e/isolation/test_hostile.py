"""A crew that tries to get out: every attempt is stopped in a run, and works where there are no fences."""

import contextlib
import json
import os
import re
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from tests.e2e.conftest import BuiltCrew
from tests.e2e.testbed import E2eTestbed, eventually
from tests.e2e.upload_project import UploadProject, tree
from tests.testbed.listeners import Listener, listening

HOSTILE = Path(__file__).parent / "hostile"
LIMITS = {"memory": "512Mi", "ephemeral-storage": "256Mi"}
METADATA = "169.254.169.254"
HOST_IPV6 = "fe80::c12e"
PIDS = 1024


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hostile(testbed: E2eTestbed) -> AsyncIterator[BuiltCrew]:
    project = f"e2e-hostile-{secrets.token_hex(4)}"
    await testbed.post(
        "/v1/projects", {"name": project, "plan": "pro", "run": {"resources": {"limits": LIMITS}}}
    )
    made = BuiltCrew(testbed, project, await UploadProject(testbed, project).deploy_and_wait(tree(HOSTILE)))
    yield made
    await testbed.kubectl("delete", "cproj", project, "--ignore-not-found", "--wait=false")


@dataclass
class UnrestrictedNamespace:
    """A namespace without fences, with a pod that only listens, and one that may do what it likes."""

    testbed: E2eTestbed
    namespace: str
    image: str

    async def kubectl(self, *words: str, stdin: str | None = None) -> str:
        return await self.testbed.kubectl(*words, "--namespace", self.namespace, stdin=stdin)

    async def pod(
        self, name: str, script: list[str], variables: dict[str, str] | None = None, **security: Any
    ) -> None:
        container = {
            "env": [{"name": key, "value": value} for key, value in (variables or {}).items()],
            "name": "main",
            "image": self.image,
            "command": ["python3", *script],
            "workingDir": "/app",
            "securityContext": security,
        }
        spec = {"restartPolicy": "Never", "containers": [container]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        await self.kubectl("create", "-f", "-", stdin=json.dumps(body))

    async def seen(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(await self.kubectl("get", "pod", name, "-o", "json"))
        return found


LISTENS = """
import socket, threading
tcp = socket.create_server(("", 7000))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("", 7000))
def speak():
    while True:
        _, who = udp.recvfrom(100)
        print("visit", who[0], flush=True)
        udp.sendto(b"here", who)
threading.Thread(target=speak, daemon=True).start()
print("listening", flush=True)
while True:
    connection, who = tcp.accept()
    print("visit", who[0], flush=True)
    connection.close()
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def outside(testbed: E2eTestbed, hostile: BuiltCrew) -> AsyncIterator[UnrestrictedNamespace]:
    name = f"e2e-outside-{secrets.token_hex(4)}"
    found = UnrestrictedNamespace(testbed, name, await hostile.upload_project.image(hostile.deployment))
    body = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
    }
    await testbed.kubectl("create", "-f", "-", stdin=json.dumps(body))
    try:

        async def account() -> str:
            return await found.testbed.kubectl("get", "sa", "--namespace", name)

        await eventually(account, lambda text: "default" in text)
        await found.pod("listens", ["-c", LISTENS])
        await eventually(
            lambda: found.testbed.kubectl("logs", "listens", "--namespace", name, check=False),
            lambda text: text.startswith("listening"),
            600,
        )
        yield found
    finally:
        await testbed.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


@contextlib.contextmanager
def added_address(address: str, device: str) -> Iterator[None]:
    """An address that an interface of this machine has meanwhile."""
    words = [address, "dev", device]
    # Usable at once: the kernel does not look for duplicates first.
    now = ["nodad"] if ":" in address else []
    subprocess.run(["ip", "address", "replace", *words, *now], check=True, timeout=30)
    try:
        yield
    finally:
        subprocess.run(["ip", "address", "delete", *words], check=False, timeout=30)


def address_of_metadata() -> contextlib.AbstractContextManager[None]:
    """The address at which clouds keep what a machine must not tell, on this machine."""
    return added_address(f"{METADATA}/32", "lo")


def _words(*command: str) -> Any:
    return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=30).stdout)


def other_address() -> str:
    """An address of this machine that is not the bridge's."""
    [first] = [word for word in _words("ip", "-json", "-4", "route", "get", "9.9.9.9") if "prefsrc" in word]
    return str(first["prefsrc"])


@dataclass
class ForbiddenListeners:
    """Listeners on forbidden addresses, and where all of these are."""

    listeners: dict[str, Listener]
    places: dict[str, tuple[str, int]]

    def visits(self) -> dict[str, int]:
        return {name: one.visits for name, one in self.listeners.items()}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def traps(
    testbed: E2eTestbed, outside: UnrestrictedNamespace, host_address: str
) -> AsyncIterator[ForbiddenListeners]:
    if os.geteuid() != 0 or host_address == "127.0.0.1":
        pytest.skip("the node is not this machine, or this is not root")
    running = ["--namespace", "crewyard-system", "--field-selector=status.phase=Running", "-o", "json"]
    pods = json.loads(await testbed.kubectl("get", "pods", *running))["items"]
    by_component = {
        pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod["status"]["podIP"] for pod in pods
    }
    neighbour = (await outside.seen("listens"))["status"]["podIP"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(address_of_metadata())
        stack.enter_context(added_address(f"{HOST_IPV6}/64", "crewyard0"))
        # The node's etcd listens on loopback; here is who would hear a knock at its port.
        listeners = {
            "etcd": stack.enter_context(listening(host_address, port=2379)),
            "metadata": stack.enter_context(listening(METADATA, port=80)),
            "host_service": stack.enter_context(listening(host_address)),
            "host_by_another_address": stack.enter_context(listening(other_address())),
            "host_by_ipv6": stack.enter_context(listening("::")),
        }
        yield ForbiddenListeners(
            listeners,
            {
                "apiserver": (host_address, 6443),
                "apiserver_by_its_service": ("10.214.0.1", 443),
                "kubelet": (host_address, 10250),
                "registry": (host_address, 5000),
                "controller": (by_component["controller"], 9090),
                "api_by_another_port": (by_component["api"], 9090),
                "neighbour": (neighbour, 7000),
                "neighbour_by_udp": (neighbour, 7000),
                "etcd": (host_address, 2379),
                "metadata": (METADATA, 80),
                "host_service": (host_address, listeners["host_service"].port),
                "host_by_another_address": (other_address(), listeners["host_by_another_address"].port),
                "host_by_ipv6": (HOST_IPV6, listeners["host_by_ipv6"].port),
            },
        )


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def inputs(testbed: E2eTestbed, hostile: BuiltCrew, traps: ForbiddenListeners) -> dict[str, Any]:
    """The input of the attempts, including another run's whole token."""
    other = (await hostile.run("listens", input={"seconds": 0}))["id"].replace("_", "-", 1)
    pod = json.loads(await testbed.kubectl("get", "pod", other, "-o", "json"))
    [container] = pod["spec"]["containers"]
    token = next(variable["value"] for variable in container["env"] if variable["name"] == "CREWYARD_TOKEN")
    api_url = next(
        variable["value"] for variable in container["env"] if variable["name"] == "CREWYARD_INTERNAL_URL"
    )
    return {
        "project": hostile.project,
        "other": other,
        "other_token": token,
        "api": api_url,
        "token_like": token[:20][::-1],
        "places": traps.places,
    }


# Where nothing fences them these come to nothing either, or would harm the machine: what is missing on this
# kernel, what the API itself rejects, what other policies or the closed IPv6 stop in all pods.
NOT_COMPARED = {
    *("kill_process_1", "set_the_clock", "restart_the_machine", "swap", "load_a_module", "packet_filter"),
    *("ask_the_kernel_for_help", "read_kernel_memory", "unmount_a_mask", "ports_of_the_processor"),
    *("open_devices", "find_a_socket_of_the_machine", "find_a_mount_of_the_machine"),
    *("claim_again", "claim_with_a_made_up_token", "claim_for_another_with_its_spent_token"),
    *("post_events", "post_events_of_another", "post_own_result", "post_result_of_another"),
    *("artifacts_of_another", "put_an_artifact_of_another", "variables_of_the_project"),
    *("runs_of_everybody", "a_run_of_its_own"),
    *("reach_controller", "reach_api_by_another_port", "reach_host_by_ipv6"),
}
ATTEMPTS = 95
"""All in tests/e2e/isolation/hostile: one that is not made is a failure."""
ROOT = {"privileged": True, "runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": False}
FREE = """
import os, runpy, sys
sys.path.insert(0, "/app")
sys.argv = ["/app/main.py"]
runpy.run_path("/app/main.py", run_name="__main__")
"""


async def test_every_egress_attempt_is_blocked(
    testbed: E2eTestbed, hostile: BuiltCrew, traps: ForbiddenListeners, inputs: dict[str, Any]
):
    """Slow: attempts that end by their timeouts."""
    before = traps.visits()
    run = await hostile.run("kickoff", input=inputs)
    assert run["status"] == "succeeded", json.dumps(run)
    came = run["output"]
    print(json.dumps(came, indent=1))
    assert [f"{name}: {one['how']}" for name, one in came.items() if not one["blocked"]] == []
    assert len(came) == ATTEMPTS
    assert traps.visits() == before


@pytest.mark.nightly
async def test_attempts_succeed_without_restrictions(
    testbed: E2eTestbed, outside: UnrestrictedNamespace, traps: ForbiddenListeners, inputs: dict[str, Any]
):
    """Slow: executes every attempt, some of which end by a timeout."""
    before = traps.visits()
    variables = {
        "INPUTS": json.dumps({**inputs, "control": True}),
        # As if a run had got them.
        "CREWYARD_TOKEN": inputs["other_token"],
        "CREWYARD_RUN_ID": inputs["other"].replace("-", "_", 1),
    }
    await outside.pod("free", ["-c", FREE], variables, **ROOT)
    ended = await eventually(
        lambda: outside.seen("free"),
        lambda seen: seen["status"].get("phase") in ("Succeeded", "Failed"),
        600,
        0.5,
    )
    output = await outside.kubectl("logs", "free")
    assert ended["status"]["phase"] == "Succeeded", output
    came = json.loads(output.splitlines()[-1])
    stopped = {name: one["how"] for name, one in came.items() if one["blocked"] and name not in NOT_COMPARED}
    assert stopped == {}
    assert len(came) == ATTEMPTS and set(came) > NOT_COMPARED
    after = traps.visits()
    assert {name for name in after if after[name] > before[name]} == set(after) - {"host_by_ipv6"}
    # The policies of crews hold by the crew's place, not by what it is: the visits are the free pod's.
    visits = await outside.kubectl("logs", "listens")
    assert set(re.findall(r"visit (\S+)", visits)) == {ended["status"]["podIP"]}


async def test_process_limit_of_the_node(hostile: BuiltCrew):
    run = await hostile.run("forks", input={"most": 4 * PIDS})
    assert run["status"] == "succeeded", json.dumps(run)
    assert PIDS // 2 < run["output"]["started"] < PIDS
    assert "Resource temporarily unavailable" in run["output"]["stopped"]


async def test_no_leaks_and_no_forged_results(testbed: E2eTestbed, hostile: BuiltCrew):
    run = await hostile.run("leaves")
    assert run["status"] == "succeeded", json.dumps(run)
    assert run["output"]["refused"] == 4
    listed = await testbed.get(f"/v1/runs/{run['id']}/artifacts")
    names = {one["name"] for one in listed}
    assert "honest.txt" in names
    assert names & {"environ.txt", "shadow.txt", "up.txt", "runner.txt", "pipe.txt", "passwd.txt"} == set()
    # A backslash is a letter here; a download to Windows reports that such names are invalid.
    assert [name for name in names if name.startswith("etc/") or {"", ".", ".."} & set(name.split("/"))] == []
    for name in names:
        answer = await testbed.call("GET", f"/v1/runs/{run['id']}/artifacts/{quote(name)}")
        assert answer.status == 200 and b"root:" not in bytes(answer.body), name
    events = await testbed.events(run["id"])
    assert [event.event for event in events].count("run.completed") == 1
    assert events[-1].event == "run.completed" and events[-1].data["output"] == run["output"]
    assert not [event for event in events if event.event == "artifact" and event.data["name"] == "forged"]
    for one in events:
        assert one.data["run_id"] == run["id"] and one.data["timestamp"] != "forged"
        assert len(json.dumps(one.data)) < 80_000
