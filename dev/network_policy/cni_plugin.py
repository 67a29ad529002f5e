"""Run by containerd for every pod, as the last link of its chain of network plugins. Standard library only.

It tells the enforcer which address a pod has and answers only once the rules
for it hold: so no packet of a container comes before them. While the enforcer
is away no pod starts. `dev.network_policy.install` puts this file where containerd
looks; it imports nothing of the repository.

The start and the end of every pod wait for it. So it takes the C parts of `json` and `socket`
without the modules around them, which would cost twice what the interpreter does.
"""

import _socket
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = 25.0
VERSIONS = ["0.3.0", "0.3.1", "0.4.0"]
TRY_AGAIN = 11


class _Rules:
    """What the scanner of JSON asks its decoder for."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def loads(data: bytes) -> "Any":
    """The JSON value. Raises ValueError without one."""
    try:
        from _json import make_scanner
    except ImportError:
        import json

        return json.loads(data)
    try:
        scan: Any = make_scanner(_Rules())  # type: ignore[arg-type]
        return scan(data.decode().strip(), 0)[0]
    except StopIteration:
        raise ValueError("no JSON") from None


def dumps(value: object) -> str:
    """The value as JSON."""
    try:
        from _json import encode_basestring_ascii, make_encoder
    except ImportError:
        import json

        return json.dumps(value)
    encode: Any = make_encoder({}, repr, encode_basestring_ascii, None, ": ", ", ", False, False, True)
    return "".join(encode(value, 0))


def variable(name: bytes) -> str:
    """One of the environment, or nothing."""
    found: bytes = posix.environ.get(name, b"")
    return found.decode()


def pod() -> dict[str, str]:
    """The pod that containerd names."""
    given = dict(part.partition("=")[::2] for part in variable(b"CNI_ARGS").split(";"))
    names = {"namespace": "K8S_POD_NAMESPACE", "name": "K8S_POD_NAME", "uid": "K8S_POD_UID"}
    return {key: given.get(name, "") for key, name in names.items()}


def ask(path: str, request: "dict[str, Any]") -> "dict[str, Any]":
    """The enforcer's answer. Raises OSError or ValueError without one."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(SECONDS)
        connection.connect(path)
        connection.sendall(dumps(request).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            piece = connection.recv(65536)
            if not piece:
                raise OSError("it hung up")
            answer += piece
    finally:
        connection.close()
    found: dict[str, Any] = loads(answer)
    return found


def main() -> int:
    """One call of the container runtime; what it is to do is in the environment."""
    command = variable(b"CNI_COMMAND")
    if command == "VERSION":
        print(dumps({"cniVersion": VERSIONS[-1], "supportedVersions": VERSIONS}))
        return 0
    given = loads(sys.stdin.buffer.read())
    before = given.get("prevResult") or {}
    addresses = [one["address"].partition("/")[0] for one in before.get("ips", ())]
    request = {
        **pod(),
        "command": command,
        "container": variable(b"CNI_CONTAINERID"),
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
        print(dumps(said))
        return 1
    if command == "ADD":
        print(dumps(before))
    return 0


if __name__ == "__main__":
    sys.exit(main())
