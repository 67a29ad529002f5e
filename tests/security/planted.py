"""Projects with a secret in every place that takes one, and what makes the service use them.

`Planted.make` sets up two projects: one by https with a private index, a webhook, GitHub's token, a pull
secret and variables from both doors; the other by ssh. Called by the search for canaries.
"""

import base64
import json
import secrets
from dataclasses import dataclass
from typing import Any

from tests.e2e.demo import GIT_HOST
from tests.e2e.git_project import GitProject
from tests.e2e.index import WheelIndex
from tests.e2e.testbed import NAMESPACE, E2eTestbed, eventually
from tests.security.canaries import Canaries
from tests.testbed.git_server import GitServer
from tests.testbed.ssh_server import SshServer

CREW = """
import os, sys

def kickoff(inputs):
    return len(os.environ["API_SECRET"])

def tells(inputs):
    print("CONTROL", os.environ["API_SECRET"], os.environ["KUBECTL_SECRET"])
    print(dict(os.environ), file=sys.stderr)
    raise ValueError("refused: " + os.environ["KUBECTL_SECRET"])
"""


@dataclass
class PlantedSecrets:
    """Two projects, the servers that they use, and the canaries."""

    testbed: E2eTestbed
    canaries: Canaries
    control: str
    https: GitProject
    ssh: GitProject
    index: WheelIndex
    secret_names: list[str]

    @classmethod
    async def make(
        cls, testbed: E2eTestbed, canaries: Canaries, git: GitServer, ssh: SshServer, index: WheelIndex
    ) -> "PlantedSecrets":
        """Make repositories, Secrets and projects; the first commits are built from then on."""
        first, second = (f"canary-{secrets.token_hex(4)}" for _ in range(2))
        made = cls(
            testbed,
            canaries,
            f"control{secrets.token_hex(8)}",
            GitProject(testbed, first, git.create(first), git.url(first, host=GIT_HOST)),
            GitProject(testbed, second, ssh.create(second), ssh.url(second, host=GIT_HOST)),
            index,
            [],
        )
        try:
            await made._secrets(git, ssh)
            made.commit("harbour-pilot==1.2\n")
            made.ssh.repository.commit({"main.py": CREW}, "By ssh")
            await made._projects()
        except BaseException:
            await made.remove()
            raise
        return made

    @property
    def projects(self) -> tuple[str, str]:
        """The names of both."""
        return self.https.project, self.ssh.project

    def commit(self, requirements: str) -> str:
        """A commit of the first project, with the control word in its tree."""
        files = {"main.py": CREW.replace("CONTROL", self.control), "requirements.txt": requirements}
        return self.https.repository.commit({**files, "note.txt": self.control}, "By https")

    async def keep(self, name: str, kind: str = "Opaque", **data: str) -> str:
        """Write a Secret, by kubectl and not by its command line."""
        body = {"apiVersion": "v1", "kind": "Secret", "type": kind}
        body |= {"metadata": {"name": name, "namespace": NAMESPACE}, "stringData": data}
        await self.testbed.kubectl("apply", "-f", "-", stdin=json.dumps(body))
        self.secret_names.append(name)
        return name

    async def _secrets(self, git: GitServer, ssh: SshServer) -> None:
        draw, name = self.canaries.draw, self.https.project
        identity = ssh.identity()
        self.canaries.know("ssh-key", identity.splitlines()[4])
        await self.keep(
            f"{self.ssh.project}-git", identity=identity, known_hosts=ssh.known_hosts(host=GIT_HOST)
        )
        await self.keep(f"{name}-git", username=git.username, password=self.canaries["git"])
        await self.keep(f"{name}-hook", token=draw("webhook"))
        await self.keep(f"{name}-github", token=draw("github", ""))
        where = f"http://{GIT_HOST}:{self.index.port}/simple/"
        await self.keep(
            f"{name}-index", **{"index-url": where, "username": "pilot", "password": self.canaries["index"]}
        )
        pair = base64.b64encode(f"puller:{draw('pull')}".encode()).decode()
        auths = json.dumps({"auths": {"registry.example.com": {"auth": pair}}})
        await self.keep(f"{name}-pull", "kubernetes.io/dockerconfigjson", **{".dockerconfigjson": auths})

    async def _projects(self) -> None:
        name = self.https.project
        git = {"ref": {"branch": "main"}, "interval": "1s"}
        labels = {"control": self.control}
        spec: dict[str, Any] = {
            "plan": "pro",
            "source": {"git": {**git, "url": self.https.url, "secretRef": {"name": f"{name}-git"}}},
            "build": {"secretRef": {"name": f"{name}-index"}},
            "webhook": {"secretRef": {"name": f"{name}-hook"}},
            "github": {"secretRef": {"name": f"{name}-github"}, "repository": "octo/tides"},
            "pod": {"imagePullSecrets": [{"name": f"{name}-pull"}]},
        }
        await self._apply(name, spec, labels)
        there = {"name": f"{self.ssh.project}-git"}
        await self._apply(
            self.ssh.project,
            {"plan": "pro", "source": {"git": {**git, "url": self.ssh.url, "secretRef": there}}},
            {},
        )
        value = {"value": self.canaries.draw("env-api")}
        await self.known(name)
        answer = await self.testbed.call("PUT", f"/v1/projects/{name}/env/API_SECRET", value)
        assert answer.status < 300, answer.body
        patch = {"stringData": {"KUBECTL_SECRET": self.canaries.draw("env-kubectl")}}
        await self.testbed.kubectl(
            "patch", "secret", f"{name}-env", "--patch-file=/dev/stdin", stdin=json.dumps(patch)
        )

    async def _apply(self, name: str, spec: dict[str, Any], labels: dict[str, str]) -> None:
        body = {"apiVersion": "crewyard.dev/v1alpha1", "kind": "Project"}
        body |= {"metadata": {"name": name, "namespace": NAMESPACE, "labels": labels}, "spec": spec}
        await self.testbed.kubectl("apply", "-f", "-", stdin=json.dumps(body))

    async def known(self, project: str) -> None:
        """Wait until the API knows the project: what kubectl made is seen there a moment later."""
        path = f"/v1/projects/{project}"
        await eventually(lambda: self.testbed.call("GET", path), lambda answer: answer.status == 200, 180)

    async def remove(self) -> None:
        """Delete both projects and all Secrets."""
        await self.testbed.kubectl("delete", "cproj", *self.projects, "--ignore-not-found", "--wait=false")
        await self.testbed.kubectl("delete", "secret", *self.secret_names, "--ignore-not-found")
