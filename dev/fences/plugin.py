"""Run by containerd for every pod, as the last link of its chain of network plugins. Standard library only.

It tells the enforcer which address a pod has and answers only once the rules
for it hold: so no packet of a container comes before them. While the enforcer
is away no pod starts. `dev.fences.install` puts this file where containerd
looks; it imports nothing of the repository.
"""

import json
import os
import socket
import sys
from typing import Any

SECONDS = 25.0
VERSIONS = ["0.3.0", "0.3.1", "0.4.0"]
TRY_AGAIN = 11


def pod() -> dict[str, str]:
    """The pod that containerd names."""
    given = dict(part.partition("=")[::2] for part in os.environ.get("CNI_ARGS", "").split(";"))
    names = {"namespace": "K8S_POD_NAMESPACE", "name": "K8S_POD_NAME", "uid": "K8S_POD_UID"}
    return {key: given.get(name, "") for key, name in names.items()}


def ask(path: str, request: dict[str, Any]) -> dict[str, Any]:
    """The enforcer's answer. Raises OSError or ValueError without one."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SECONDS)
        connection.connect(path)
        connection.sendall(json.dumps(request).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            piece = connection.recv(65536)
            if not piece:
                raise OSError("it hung up")
            answer += piece
    found: dict[str, Any] = json.loads(answer)
    return found


def main() -> int:
    """One call of the container runtime; what it is to do is in the environment."""
    command = os.environ.get("CNI_COMMAND", "")
    if command == "VERSION":
        print(json.dumps({"cniVersion": VERSIONS[-1], "supportedVersions": VERSIONS}))
        return 0
    given = json.load(sys.stdin)
    before = given.get("prevResult") or {}
    addresses = [one["address"].partition("/")[0] for one in before.get("ips", ())]
    request = {
        **pod(),
        "command": command,
        "container": os.environ.get("CNI_CONTAINERID", ""),
        "addresses": [one for one in addresses if ":" not in one],
    }
    try:
        answer = ask(given["socket"], request)
        problem = answer.get("problem")
    except (OSError, ValueError) as error:
        problem = f"it does not answer: {error}"
    # What goes must go, whoever is away; the enforcer forgets it when it comes back.
    if problem and command in ("ADD", "CHECK"):
        said = {
            "cniVersion": given.get("cniVersion"),
            "code": TRY_AGAIN,
            "msg": f"crewyard fences: {problem}",
        }
        print(json.dumps(said))
        return 1
    if command == "ADD":
        print(json.dumps(before))
    return 0


if __name__ == "__main__":
    sys.exit(main())
