"""Builds in line: their positions, their log while they go on, and what is left of one that is deleted."""

from tests.e2e.yard import eventually

SLOW = """
import time
from setuptools import setup
for number in range({seconds}):
    print("step", number, flush=True)
    time.sleep(1)
setup(name="slow", version="1", package_dir={{"": "lib"}}, packages=["slow"])
"""


def slow(seconds: int) -> dict[str, str]:
    """A tree whose installation takes a while, and says so."""
    return {
        "crew.toml": '[deployment]\nentrypoint = "slow.crew:kickoff"\n',
        "setup.py": SLOW.format(seconds=seconds),
        "lib/slow/__init__.py": "",
        "lib/slow/crew.py": "def kickoff(inputs):\n    return inputs\n",
    }


async def installing(shop, deployment: str) -> None:
    """Returns when Kaniko works on it."""

    async def look() -> bool:
        for pod in await shop.pods(deployment):
            for status in pod["status"].get("initContainerStatuses", []):
                if status["name"] == "kaniko" and "running" in status["state"]:
                    return True
        return False

    await eventually(look, lambda there: there, 240)


async def test_a_deleted_deployment_stops_its_pods(yard, workshops):
    shop = await workshops()
    deployment = await shop.deploy(slow(300))
    await installing(shop, deployment)
    await yard.kubectl("delete", "cdep", deployment.replace("_", "-", 1), "--wait=false")
    # Long before what it installs would have come to its end.
    await eventually(lambda: shop.pods(deployment), lambda pods: not pods, 120)
    # The API hears of it by a watch of its own.
    await eventually(
        lambda: yard.call("GET", f"/v1/deployments/{deployment}"), lambda answer: answer.status == 404
    )
    # Its place is free: the next one is built.
    assert (await shop.ended(await shop.deploy({"main.py": "def kickoff(): ..."})))["status"] == "active"


async def test_a_build_log_is_told_while_the_build_goes_on(yard, workshops):
    shop = await workshops()
    deployment = await shop.deploy(slow(4))
    live, ended = [], None
    async for message in yard.stream(f"/v1/deployments/{deployment}/logs", seconds=200):
        if message.event == "end":
            ended = message.data
            break
        status = (await yard.get(f"/v1/deployments/{deployment}"))["status"]
        live.append((message.data["message"].strip(), status))
    assert ended == {"status": "active"}
    # Our own lines and pip's, which Kaniko's container prints, arrive before the end.
    early = " ".join(line for line, status in live if status == "building")
    assert "plan: python" in early and "Building wheel" in early, live
    assert "Building wheel" in await shop.log(deployment)


async def test_builds_wait_in_line(yard, workshops):
    """One at a time for a project, two for the installation; the others say where they stand."""
    shops = [await workshops() for _ in range(3)]
    first = [await shop.deploy(slow(8)) for shop in shops]
    second = await shops[0].deploy({"main.py": "def kickoff(inputs):\n    return 2\n"})

    async def positions() -> list[int | None]:
        shown = [await yard.get(f"/v1/deployments/{one}") for one in (first[2], second)]
        return [one.get("queue_position") for one in shown]

    await eventually(positions, lambda seen: seen == [1, 2], 60)
    assert (await yard.get(f"/v1/deployments/{first[2]}"))["status"] == "pending"

    most = 0

    async def look() -> set[str]:
        nonlocal most
        states = [(await yard.get(f"/v1/deployments/{one}"))["status"] for one in (*first, second)]
        most = max(most, states.count("building"))
        return set(states)

    await eventually(look, lambda states: not states & {"pending", "building"}, 300, 0.3)
    assert most <= 2
    assert [(await yard.get(f"/v1/deployments/{one}"))["status"] for one in (second, *first[1:])] == [
        "active"
    ] * 3
