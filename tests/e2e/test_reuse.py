"""What is built again and what is not: equal content, the same commit, other code, excluded files."""

from tests.e2e.registry import Registry
from tests.e2e.workshop import Workshop, archive
from tests.e2e.yard import eventually

CODE = {"main.py": "def kickoff(inputs):\n    return 1\n"}


async def test_identical_content_needs_no_pod_and_pushes_nothing(yard, workshops):
    shop = await workshops()
    content = archive(CODE)
    first = await shop.built(content)
    image = await shop.image(first)
    registry = Registry.of(image)
    tags = await registry.tags()

    second = await shop.deploy(content, message="The same again")
    done = await shop.ended(second)
    assert done["status"] == "active"
    assert (await yard.get(f"/v1/deployments/{first}"))["status"] == "superseded"
    assert await shop.image(second) == image
    assert await shop.pods(second) == []
    assert await registry.tags() == tags
    shown = await shop.object(second)
    built = next(one for one in shown["status"]["conditions"] if one["type"] == "Built")
    assert built["reason"] == "Reused" and first.replace("_", "-", 1) in built["message"]


async def test_other_code_keeps_the_dependency_image(yard, workshops):
    shop = await workshops()
    first = await shop.built({**CODE, "requirements.txt": "idna==3.10\n"})
    second = await shop.built(
        {"main.py": "def kickoff(i):\n    return 2\n", "requirements.txt": "idna==3.10\n"}
    )
    kinds = [pod["spec"]["containers"][0]["name"] for pod in await shop.pods(second)]
    assert kinds == ["assemble"]
    registry = Registry.of(await shop.image(first))
    one, two = [await registry.manifest(await shop.image(each)) for each in (first, second)]
    assert one["layers"][:-1] == two["layers"][:-1]
    assert one["layers"][-1] != two["layers"][-1]
    log = await shop.log(second)
    assert "is there" in log and "Collecting" not in log
    assert "idna" in await shop.log(first)


async def test_the_same_commit_built_twice_is_the_same_digest(yard, team):
    """Its Deployment is deleted and asked for again: it is assembled once more from the repository."""
    sha = team.repository.commit(CODE, "Begin")
    await team.follow()
    first = await team.ended(sha)
    assert first["status"]["phase"] == "Active"
    name = first["metadata"]["name"]
    await yard.kubectl("delete", "cdep", name, "--wait=true")
    await eventually(
        lambda: yard.call("GET", f"/v1/deployments/{name.replace('-', '_', 1)}"),
        lambda seen: seen.status == 404,
    )
    await yard.post("/v1/deployments", {"project": team.project, "source": {"git": {"commit": sha}}})
    second = await team.ended(sha)
    assert second["metadata"]["name"] == name
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    built = next(one for one in second["status"]["conditions"] if one["type"] == "Built")
    assert (built["status"], built["reason"]) == ("True", "Built"), built
    digests = [one["status"]["image"].partition("@")[2] for one in (first, second)]
    assert digests[0] == digests[1] != ""


async def test_a_commit_and_an_upload_of_its_files_have_the_same_layers(yard, team):
    """By the poll, and by an upload beside it."""
    sha = team.repository.commit(CODE, "Begin")
    await team.follow()
    first = await team.ended(sha)
    assert first["status"]["phase"] == "Active"
    shop = Workshop(yard, team.project)
    second = await shop.built(CODE, override=True)
    shown = await shop.object(second)
    assert shown["status"]["tree"] == first["status"]["tree"]
    registry = Registry.of(first["status"]["image"])
    layers = [(await registry.manifest(one["status"]["image"]))["layers"] for one in (first, shown)]
    assert layers[0] == layers[1]


async def test_the_same_tree_packed_otherwise_is_the_same_image(workshops):
    shop = await workshops()
    files = {**CODE, "b.py": "B = 1\n", "a/c.py": "C = 1\n"}
    first = await shop.built(files)
    second = await shop.built(archive(dict(reversed(files.items()))))
    assert await shop.image(first) == await shop.image(second)
    assert "already there" in await shop.log(second) or "nothing to push" in await shop.log(second)


async def test_excluded_files_are_in_no_layer_and_change_nothing(workshops):
    shop = await workshops()
    config = '[build]\nexclude = ["data", "*.csv", "notes/*.md"]\n'
    files = {
        **CODE,
        "crew.toml": config,
        "data/big.bin": "1",
        "a.csv": "1",
        "notes/x.md": "1",
        "notes/y.txt": "1",
    }
    first = await shop.built(files)
    image = await shop.image(first)
    kept = {name for name in await Registry.of(image).files(image, 1) if name.startswith("app/")}
    assert kept == {"app/main.py", "app/crew.toml", "app/notes/y.txt"}
    second = await shop.built({**files, "data/big.bin": "2", "a.csv": "2"})
    assert await shop.image(second) == image


async def test_two_equal_sources_at_once_are_built_once(yard, workshops):
    shop = await workshops()
    content = archive({**CODE, "requirements.txt": "idna==3.10\n"})
    first = await shop.deploy(content)
    second = await shop.deploy(content)
    waiting = await eventually(
        lambda: shop.object(second), lambda seen: len(seen["status"]["conditions"]) > 1, 60
    )
    ready = next(one for one in waiting["status"]["conditions"] if one["type"] == "Ready")
    assert ready["reason"] in ("SameSourceBuilding", "Activating", "Active"), ready
    assert (await shop.ended(first))["status"] in ("active", "superseded")
    assert (await shop.ended(second))["status"] == "active"
    assert await shop.pods(second) == []
    assert await shop.image(first) == await shop.image(second)
