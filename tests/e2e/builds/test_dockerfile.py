"""A crew's own Dockerfile as the base of its image, built by Kaniko."""

import pytest

from tests.e2e.conftest import BuiltCrew
from tests.e2e.failures import failed

pytestmark = pytest.mark.nightly
CREW_TOML = '[build]\ndockerfile = "Dockerfile"\n'
# Two stages, a variable, a virtual environment, a user and a shell that the builder cannot use later.
DOCKERFILE = """\
ARG PYTHON=3.11
FROM python:${PYTHON}-slim AS made
RUN --mount=type=cache,target=/root/.cache mkdir /made \\
    # the tide
    && echo spring > /made/tide
FROM python:3.11-slim
SHELL ["/bin/bash", "-c"]
COPY --from=made /made/tide /srv/
COPY data/ /srv/data/
RUN python3 -m venv --system-site-packages /opt/own && [[ -f /srv/data/moon ]] && id > /srv/id
ENV PATH=/opt/own/bin:$PATH
RUN mkdir -p /app/artifacts && touch /app/artifacts/left-over
USER daemon
CMD ["sleep", "1"]
"""
MAIN = """\
import os, pathlib, sys

import six


def kickoff(inputs):
    read = [pathlib.Path("/srv", name).read_text().split()[0] for name in ("tide", "data/moon", "id")]
    own = six.__file__.startswith("/opt/own/")
    return [*read, sys.prefix, own, os.getuid(), os.listdir("/app/artifacts")]
"""


async def test_the_image_of_a_dockerfile_is_the_base(crew):
    """Slow: Kaniko unpacks and scans a base image twice."""
    files = {
        "crew.toml": CREW_TOML,
        "Dockerfile": DOCKERFILE,
        "data/moon": "full",
        "requirements.txt": "six==1.17.0\n",
        "main.py": MAIN,
    }
    deployment = await crew.upload_project.deploy_and_wait(files, preview={})
    log = await crew.upload_project.log(deployment)
    assert "ignored instructions: USER, CMD" in log
    built = BuiltCrew(crew.testbed, crew.project, deployment)
    run = await built.run("main:kickoff")
    assert run["output"] == ["spring", "full", "uid=0(root)", "/opt/own", True, 65532, []]


async def test_another_python_than_the_crews(crew):
    """Slow: Kaniko unpacks a base image."""
    files = {
        "crew.toml": f'[deployment]\npython = "3.14"\n{CREW_TOML}',
        "Dockerfile": "FROM python:3.11-slim\n",
    }
    files["main.py"] = "def kickoff(inputs): ...\n"
    deployment = await crew.upload_project.deploy(files, preview={})
    await failed(
        crew.upload_project, deployment, "ConfigInvalid", ["has Python 3.11, and the crew needs 3.14"]
    )


async def test_the_image_of_another_project_is_refused(crew):
    image = "registry.crewyard.internal:5000/crews/other:latest"
    files = {"crew.toml": CREW_TOML, "Dockerfile": f"FROM {image}\n", "main.py": "def kickoff(inputs): ...\n"}
    deployment = await crew.upload_project.deploy(files, preview={})
    await failed(crew.upload_project, deployment, "ConfigInvalid", [f"does not allow the image {image}"])
