"""CNI plugin that containerd runs once per pod, last in its plugin chain. Standard library only.

It reports a pod's address to the enforcer and returns only when the address's rules are in place: no packet
of a container precedes them. While the enforcer is down no pod starts. `dev.network_policy.install` copies
this file to containerd's plugin directory; it imports nothing of the repository.

The start and the end of every pod wait for it. It therefore uses the C parts of `json` and `socket` without
the modules around them, which would take twice the start time of the interpreter.
"""

import _socket
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CALL_TIMEOUT_SECONDS = 25.0
VERSIONS = ["0.3.0", "0.3.1", "0.4.0"]
CNI_TRY_AGAIN_LATER = 11


class _ScannerOptions:
    """Attributes that the C scanner of JSON reads from its decoder."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def loads(data: bytes) -> "Any":
    """Return the JSON value. Raises ValueError if there is none."""
    try:
        from _json import make_scanner
    except ImportError:
        import json

        return json.loads(data)
    try:
        scan: Any = make_scanner(_ScannerOptions())  # type: ignore[arg-type]
        return scan(data.decode().strip(), 0)[0]
    except StopIteration:
        raise ValueError("no JSON") from None


def dumps(value: object) -> str:
    """Return the value as JSON."""
    try:
        from _json import encode_basestring_ascii, make_encoder
    except ImportError:
        import json

        return json.dumps(value)
    encode: Any = make_encoder({}, repr, encode_basestring_ascii, None, ": ", ", ", False, False, True)
    return "".join(encode(value, 0))


def environment_variable(name: bytes) -> str:
    """Return an environment variable, or an empty text."""
    value: bytes = posix.environ.get(name, b"")
    return value.decode()


def pod() -> dict[str, str]:
    """Return the pod that containerd names."""
    arguments = dict(part.partition("=")[::2] for part in environment_variable(b"CNI_ARGS").split(";"))
    names = {"namespace": "K8S_POD_NAMESPACE", "name": "K8S_POD_NAME", "uid": "K8S_POD_UID"}
    return {key: arguments.get(name, "") for key, name in names.items()}


def call_enforcer(path: str, request: "dict[str, Any]") -> "dict[str, Any]":
    """Return the enforcer's response. Raises OSError or ValueError without one."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(CALL_TIMEOUT_SECONDS)
        connection.connect(path)
        connection.sendall(dumps(request).encode() + b"\n")
        received = b""
        while not received.endswith(b"\n"):
            chunk = connection.recv(65536)
            if not chunk:
                raise OSError("connection closed")
            received += chunk
    finally:
        connection.close()
    response: dict[str, Any] = loads(received)
    return response


def main() -> int:
    """Serve one call of the container runtime; the command is in the environment."""
    command = environment_variable(b"CNI_COMMAND")
    if command == "VERSION":
        print(dumps({"cniVersion": VERSIONS[-1], "supportedVersions": VERSIONS}))
        return 0
    config = loads(sys.stdin.buffer.read())
    previous = config.get("prevResult") or {}
    addresses = [address["address"].partition("/")[0] for address in previous.get("ips", ())]
    request = {
        **pod(),
        "command": command,
        "container": environment_variable(b"CNI_CONTAINERID"),
        "addresses": [address for address in addresses if ":" not in address],
    }
    try:
        response = call_enforcer(config["socket"], request)
        problem = response.get("problem")
    except (OSError, ValueError) as error:
        problem = f"no response: {error}"
    # A deletion must succeed without the enforcer; it drops the pod's address after its restart.
    if problem and command in ("ADD", "CHECK"):
        error_result = {
            "cniVersion": config.get("cniVersion"),
            "code": CNI_TRY_AGAIN_LATER,
            "msg": f"crewyard network policy enforcer: {problem}",
        }
        print(dumps(error_result))
        return 1
    if command == "ADD":
        print(dumps(previous))
    return 0


if __name__ == "__main__":
    sys.exit(main())
