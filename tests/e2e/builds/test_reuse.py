"""What is built again and what is not: equal content, the same commit, other code, excluded files."""

import pytest

from tests.e2e.registry import RegistryRepository
from tests.e2e.testbed import eventually
from tests.e2e.upload_project import UploadProject, archive

CODE = {"main.py": "def kickoff(inputs):\n    return 1\n"}


async def test_identical_content_reuses_the_image(testbed, upload_projects):
    upload_project = await upload_projects()
    content = archive(CODE)
    first = await upload_project.deploy_and_wait(content)
    image = await upload_project.image(first)
    registry = RegistryRepository.of(image)
    tags = await registry.tags()

    second = await upload_project.deploy(content, message="The same again")
    done = await upload_project.wait_finished(second)
    assert done["status"] == "active"
    assert (await testbed.get(f"/v1/deployments/{first}"))["status"] == "superseded"
    assert await upload_project.image(second) == image
    assert await upload_project.pods(second) == []
    assert await registry.tags() == tags
    shown = await upload_project.object(second)
    built = next(condition for condition in shown["status"]["conditions"] if condition["type"] == "Built")
    assert built["reason"] == "Reused" and first.replace("_", "-", 1) in built["message"]


async def test_code_change_reuses_the_dependency_image(testbed, upload_projects):
    """Slow: two builds, the first one with a dependency image."""
    upload_project = await upload_projects()
    first = await upload_project.deploy_and_wait({**CODE, "requirements.txt": "idna==3.10\n"})
    second = await upload_project.deploy_and_wait(
        {"main.py": "def kickoff(i):\n    return 2\n", "requirements.txt": "idna==3.10\n"}
    )
    kinds = [pod["spec"]["containers"][0]["name"] for pod in await upload_project.pods(second)]
    assert kinds == ["assemble"]
    registry = RegistryRepository.of(await upload_project.image(first))
    one, two = [await registry.manifest(await upload_project.image(each)) for each in (first, second)]
    assert one["layers"][:-1] == two["layers"][:-1]
    assert one["layers"][-1] != two["layers"][-1]
    log = await upload_project.log(second)
    assert "is built" in log and "Collecting" not in log
    assert "idna" in await upload_project.log(first)


@pytest.mark.nightly
async def test_same_commit_has_the_same_digest(testbed, git_project):
    """Its Deployment is deleted and asked for again: it is assembled once more from the repository.

    A later commit keeps the proof of the dependency image. Slow: three builds, with a deletion between.
    """
    sha = git_project.repository.commit(CODE, "Begin")
    await git_project.follow()
    first = await git_project.wait_finished(sha)
    assert first["status"]["phase"] == "Active"
    name = first["metadata"]["name"]
    later = git_project.repository.commit({**CODE, "more.py": "MORE = 1\n"}, "Go on")
    assert (await git_project.wait_finished(later))["status"]["phase"] == "Active"
    await testbed.kubectl("delete", "cdep", name, "--wait=true")
    await eventually(
        lambda: testbed.call("GET", f"/v1/deployments/{name.replace('-', '_', 1)}"),
        lambda seen: seen.status == 404,
    )
    await testbed.post(
        "/v1/deployments", {"project": git_project.project, "source": {"git": {"commit": sha}}}
    )
    second = await git_project.wait_finished(sha)
    assert second["metadata"]["name"] == name
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    built = next(condition for condition in second["status"]["conditions"] if condition["type"] == "Built")
    assert (built["status"], built["reason"]) == ("True", "Built"), built
    digests = [one["status"]["image"].partition("@")[2] for one in (first, second)]
    assert digests[0] == digests[1] != ""


@pytest.mark.nightly
async def test_commit_and_upload_have_the_same_layers(testbed, git_project):
    """By the poll, and by an upload beside it.

    Slow: two builds of the same source.
    """
    sha = git_project.repository.commit(CODE, "Begin")
    await git_project.follow()
    first = await git_project.wait_finished(sha)
    assert first["status"]["phase"] == "Active"
    upload_project = UploadProject(testbed, git_project.project)
    second = await upload_project.deploy_and_wait(CODE, override=True)
    shown = await upload_project.object(second)
    assert shown["status"]["tree"] == first["status"]["tree"]
    registry = RegistryRepository.of(first["status"]["image"])
    layers = [(await registry.manifest(one["status"]["image"]))["layers"] for one in (first, shown)]
    assert layers[0] == layers[1]


@pytest.mark.nightly
async def test_archive_order_does_not_change_the_image(upload_projects):
    upload_project = await upload_projects()
    files = {**CODE, "b.py": "B = 1\n", "a/c.py": "C = 1\n"}
    first = await upload_project.deploy_and_wait(files)
    second = await upload_project.deploy_and_wait(archive(dict(reversed(files.items()))))
    assert await upload_project.image(first) == await upload_project.image(second)
    assert "nothing to push" in await upload_project.log(second)


@pytest.mark.nightly
async def test_excluded_files_do_not_change_the_image(upload_projects):
    upload_project = await upload_projects()
    config = '[build]\nexclude = ["data", "*.csv", "notes/*.md"]\n'
    files = {
        **CODE,
        "crew.toml": config,
        "data/big.bin": "1",
        "a.csv": "1",
        "notes/x.md": "1",
        "notes/y.txt": "1",
    }
    first = await upload_project.deploy_and_wait(files)
    image = await upload_project.image(first)
    kept = {name for name in await RegistryRepository.of(image).files(image, 1) if name.startswith("app/")}
    assert kept == {"app/main.py", "app/crew.toml", "app/notes/y.txt"}
    second = await upload_project.deploy_and_wait({**files, "data/big.bin": "2", "a.csv": "2"})
    assert await upload_project.image(second) == image


async def test_equal_parallel_sources_are_built_once(testbed, upload_projects):
    """Slow: a whole build with a dependency image."""
    upload_project = await upload_projects()
    content = archive({**CODE, "requirements.txt": "idna==3.10\n"})
    first = await upload_project.deploy(content)
    second = await upload_project.deploy(content)
    assert (await upload_project.wait_finished(first))["status"] in ("active", "superseded")
    assert (await upload_project.wait_finished(second))["status"] == "active"
    assert await upload_project.pods(second) == []
    shown = await upload_project.object(second)
    built = next(condition for condition in shown["status"]["conditions"] if condition["type"] == "Built")
    assert built["reason"] == "Reused" and first.replace("_", "-", 1) in built["message"]
    assert await upload_project.image(first) == await upload_project.image(second)
