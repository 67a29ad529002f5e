"""A crew with a model in the cluster: the scripted model, `run.egress`, variables, a build, a run.

`make demo MODEL=1` runs it on the dev cluster of `make up`, and an end-to-end test does the same.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.e2e.testbed import E2eTestbed
from tests.e2e.timeline import Timeline

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PROJECT = "tides"
IMAGE = "python:3.11-slim"
SYSTEM = ("-n", "crewyard-system", "get")


async def deploy_model(testbed: E2eTestbed) -> str:
    """Apply examples/model with the image that the installation builds crews from; return what it said."""
    name = await testbed.kubectl(
        *SYSTEM,
        "deployment/crewyard-controller",
        "-o",
        "jsonpath={.spec.template.spec.containers[0].envFrom[0].configMapRef.name}",
    )
    settings = json.loads(await testbed.kubectl(*SYSTEM, "configmap", name, "-o", "json"))["data"]
    image = next(iter(json.loads(settings["CREWYARD_BASE_IMAGES"]).values()))
    manifests = await testbed.kubectl("kustomize", str(EXAMPLES / "model"))
    said = await testbed.kubectl("-n", "models", "apply", "-f", "-", stdin=manifests.replace(IMAGE, image))
    return said + await testbed.kubectl(
        "-n", "models", "rollout", "status", "deployment/model", "--timeout=240s"
    )


class ModelDemo:
    """The steps, in their order."""

    def __init__(self, testbed: E2eTestbed, timeline: Timeline, project: str) -> None:
        self.testbed = testbed
        self.timeline = timeline
        self.project = project

    async def crewyard(self, *arguments: str, check: bool = True) -> str:
        """Run the command line and print what it prints. Raises SystemExit if it fails."""
        self.timeline.say(f"$ crewyard {' '.join(arguments)}")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "crewyard.cli.main",
            *arguments,
            env={**os.environ, "PYTHONPATH": str(ROOT / "client")},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out = (await process.communicate())[0].decode()
        self.timeline.say(out)
        if check and process.returncode:
            raise SystemExit(f"crewyard {arguments[0]} ended with {process.returncode}")
        return out

    async def play(self) -> None:
        """All steps."""
        step = self.timeline.step
        with step("A scripted model in the cluster"):
            self.timeline.say(await deploy_model(self.testbed))
        with step("A project whose runs may connect to it"):
            exists = await self.testbed.kubectl("get", "cproj", self.project, "--ignore-not-found")
            await self.crewyard(
                "projects", "set" if exists else "create", self.project, "--egress", "models/model"
            )
            address = "OPENAI_BASE_URL=http://model.models.svc:8080/v1"
            await self.crewyard("env", "set", "-p", self.project, address, "OPENAI_API_KEY=none")
        with step("Deploy the crew"):
            await self.crewyard("deploy", str(EXAMPLES / "openai"), "-p", self.project)
        with step("Run it"):
            await self.crewyard("run", self.project, "--input", '{"place": "Reykjavik"}')


async def main() -> None:
    """Run the demo and print commands to inspect the result."""
    timeline = Timeline()
    testbed = await E2eTestbed.open()
    try:
        await ModelDemo(testbed, timeline, PROJECT).play()
    finally:
        await testbed.close()
    timeline.summary()
    print(
        '\nLook around:\n  eval "$(make -s env)"\n'
        f"  kubectl -n crews describe networkpolicy crewyard-egress-{PROJECT}\n"
        "  kubectl -n models logs deployment/model"
    )


if __name__ == "__main__":
    asyncio.run(main())
