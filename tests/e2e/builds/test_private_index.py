"""A private package index: its packages reach the image, its password reaches nothing else."""

import base64
import json
import secrets
from urllib.parse import quote

import pytest

from tests.e2e.conftest import BuiltCrew
from tests.e2e.demo import GIT_HOST
from tests.e2e.failures import failed
from tests.e2e.index import WheelIndex, wheel
from tests.e2e.registry import RegistryRepository
from tests.e2e.secret import secret

FILES = {
    "main.py": "import harbour_pilot\n\n\ndef kickoff(inputs):\n    return harbour_pilot.WORD\n",
    "requirements.txt": "harbour-pilot==1.2\n",
}


def sights(password: str) -> list[str]:
    """The forms in which a password could be left behind."""
    pair = base64.b64encode(f"pilot:{password}".encode()).decode()
    return [password, quote(password), pair, base64.b64encode(password.encode()).decode()]


async def everything(testbed, upload_project, deployment: str) -> str:
    """All that is left of a build but the image's layers: objects, logs, events, pods."""
    parts = [json.dumps(await upload_project.object(deployment)), await upload_project.log(deployment)]
    for pod in await upload_project.pods(deployment):
        parts.append(json.dumps(pod))
        name = pod["metadata"]["name"]
        parts.append(await testbed.kubectl("logs", name, "--all-containers", check=False))
    parts.append(await testbed.kubectl("get", "events", "-o", "json"))
    return "\n".join(parts)


@pytest.mark.nightly
async def test_private_index_credential_leaves_no_trace(testbed, upload_projects, host_address):
    """Slow: a build with a dependency image, whose files are all searched."""
    password = f"canary-{secrets.token_hex(12)}+/"
    name, content = wheel("harbour_pilot", "1.2", "WORD = 'aboard'\n")
    with WheelIndex(host_address, "pilot", password, {name: content}) as index:
        url = f"http://{GIT_HOST}:{index.port}/simple/"
        async with secret(testbed, index_url=url, username="pilot", password=password) as named:
            upload_project = await upload_projects(build={"secret_ref": {"name": named}})
            deployment = await upload_project.deploy_and_wait(FILES)
            run = await BuiltCrew(testbed, upload_project.project, deployment).run("kickoff")
            assert (run["status"], run["output"]) == ("succeeded", "aboard")
            assert any(name in path for path in index.served)

            left = await everything(testbed, upload_project, deployment)
            assert named in left, "the pods name the Secret"
            assert [form for form in sights(password) if form in left] == []
            image = await upload_project.image(deployment)
            registry = RegistryRepository.of(image)
            layers = await registry.files(image)
            assert any(path.endswith("harbour_pilot.py") for path in layers)
            forms = [form.encode() for form in (*sights(password), url)]
            assert [path for path, data in layers.items() if any(form in data for form in forms)] == []
            configuration = await registry.configuration(image)
            assert [form for form in forms if form in configuration] == []
            # What may execute code of the dependencies gets no credential.
            for pod in await upload_project.pods(deployment):
                for container in pod["spec"].get("initContainers", []):
                    if container["name"] != "source":
                        assert named not in json.dumps(container)

            wrong = await upload_project.deploy({**FILES, "requirements.txt": "harbour-pilot==9.9\n"})
            await failed(upload_project, wrong, "DependencyResolution", ["harbour-pilot"])
            left = await everything(testbed, upload_project, wrong)
            assert [form for form in sights(password) if form in left] == []
