"""Attempts on process 1, which holds the run's token, and on what it holds it for."""

import base64
import ctypes
import hashlib
import json
import os
import resource
import signal
import time
import urllib.error
import urllib.request

from probe import Stopped, in_child, probe, syscall, waits


@probe
def environment_of_process_1(inputs):
    with open("/proc/1/environ", "rb") as file:
        return f"read {len(file.read())} bytes"


@probe
def memory_of_process_1(inputs):
    with open("/proc/1/mem", "rb"):
        return "opened"


@probe
def map_of_process_1(inputs):
    with open("/proc/1/maps") as file:
        return f"read {len(file.read())} characters"


@probe
def files_of_process_1(inputs):
    return os.listdir("/proc/1/fd")


@probe
def root_of_process_1(inputs):
    return os.listdir("/proc/1/root")


@probe
def trace_process_1(inputs):
    # PTRACE_SEIZE does not stop it, and ends with the process that did it.
    return in_child(lambda: syscall(101, 0x4206, 1, 0, 0))


@probe
def read_process_1_from_afar(inputs):
    here = ctypes.create_string_buffer(64)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(here), 64)
    remote = (ctypes.c_size_t * 2)(id(os), 64)
    try:
        return syscall(310, 1, local, 1, remote, 1, 0)
    except OSError as error:
        if error.errno == 14:
            return "only the address was wrong"
        raise


@probe
def take_a_file_of_process_1(inputs):
    handle = os.pidfd_open(1)
    try:
        return syscall(438, handle, 0, 0)
    finally:
        os.close(handle)


@probe
def limits_of_process_1(inputs):
    before = resource.prlimit(1, resource.RLIMIT_NOFILE)
    resource.prlimit(1, resource.RLIMIT_NOFILE, before)
    return f"set {before}"


@probe
def offer_process_1_to_the_killer(inputs):
    with open("/proc/1/oom_score_adj", "w") as file:
        file.write("1000")
    return "offered"


@probe
@waits
def kill_process_1(inputs):
    if inputs.get("control"):
        raise LookupError("process 1 never dies of its own namespace's signals")
    for number in (
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGSTOP,
        signal.SIGKILL,
    ):
        os.kill(1, number)
    time.sleep(1)
    with open("/proc/1/stat") as file:
        state = file.read().rpartition(")")[2].split()[0]
    if state in "TtZX":
        return f"it is {state}"
    raise Stopped("six signals, and it lives")


def _environments():
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    yield file.read().decode(errors="replace")
            except OSError:
                continue


@probe
def token_in_an_environment(inputs):
    found = sorted(
        {
            entry.partition("=")[0]
            for text in _environments()
            for entry in text.split("\0")
            if entry.startswith("CREWYARD_") and not entry.startswith("CREWYARD_RUN_ID=")
        }
    )
    if not found:
        raise Stopped("no variable of the service but the run's id")
    return str(found)


def _names_this_run(text):
    """Whether a text is the beginning of a token, and of this run's."""
    body = text.split(b".")[0]
    try:
        return _own().encode() in base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4))
    except ValueError:
        return False


@probe
def token_in_own_memory(inputs):
    # All tokens begin alike; the marker is reversed, so that a search does not find the input itself.
    start = inputs["token_like"][::-1].encode()
    found = 0
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            first, last = (int(part, 16) for part in span.split("-"))
            try:
                memory.seek(first)
                content = memory.read(min(last - first, 64 << 20))
            except (OSError, OverflowError, ValueError):
                continue
            found += sum(_names_this_run(start + piece[:400]) for piece in content.split(start)[1:])
    if not found:
        raise Stopped("there is none of this run")
    return f"{found} places"


def _call(inputs, method, path, body=None, token=None, **more):
    headers = {"Content-Type": "application/json", **more}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(inputs["api"] + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            excerpt = answer.read(200)
            if b'"refused"' in excerpt:
                raise Stopped(excerpt.decode())
            return f"{answer.status} {excerpt!r}"
    except urllib.error.HTTPError as error:
        if error.code in (401, 403, 404):
            raise Stopped(f"answered {error.code}") from None
        raise Stopped(f"answered {error.code} {error.read(200)!r}") from None


def _own():
    return os.environ.get("CREWYARD_RUN_ID", "run_none").replace("_", "-", 1)


CLAIM = {"protocol": 1, "run_uid": "x", "pod_uid": "x", "nonce": "n" * 32}
RESULT = {
    **{"pod_uid": "x", "nonce": "n" * 32, "outcome": "succeeded", "output": "forged", "duration_ms": 1},
    **{"reason": None, "message": None, "output_artifact": None, "last_event": 0},
    "artifacts": {"count": 0, "bytes": 0},
}
EVENT = {
    "seq": 1,
    "type": "log",
    "time": "2026-11-21T10:00:00.000001Z",
    "data": {"message": "forged", "level": "info"},
}
EVENTS = {"pod_uid": "x", "nonce": "n" * 32, "events": [EVENT]}


@probe
@waits
def claim_again(inputs):
    return _call(inputs, "POST", f"/internal/v1/runs/{_own()}/claim", CLAIM)


@probe
@waits
def claim_with_a_made_up_token(inputs):
    return _call(inputs, "POST", f"/internal/v1/runs/{_own()}/claim", CLAIM, "run.made.up")


@probe
@waits
def claim_for_another_with_its_spent_token(inputs):
    return _call(inputs, "POST", f"/internal/v1/runs/{_own()}/claim", CLAIM, inputs["other_token"])


@probe
@waits
def post_events(inputs):
    return _call(inputs, "POST", f"/internal/v1/runs/{_own()}/events", EVENTS)


@probe
@waits
def post_events_of_another(inputs):
    return _call(inputs, "POST", f"/internal/v1/runs/{inputs['other']}/events", EVENTS, inputs["other_token"])


@probe
@waits
def post_own_result(inputs):
    return _call(inputs, "POST", f"/internal/v1/runs/{_own()}/result", RESULT)


@probe
@waits
def post_result_of_another(inputs):
    return _call(inputs, "POST", f"/internal/v1/runs/{inputs['other']}/result", RESULT, inputs["other_token"])


@probe
@waits
def artifacts_of_another(inputs):
    return _call(inputs, "GET", f"/v1/runs/{inputs['other'].replace('-', '_', 1)}/artifacts")


@probe
@waits
def put_an_artifact_of_another(inputs):
    path = f"/internal/v1/runs/{inputs['other']}/artifacts/a.txt"
    values = {"Pod": "x", "Nonce": "n" * 32, "Partial": "false", "Sha256": hashlib.sha256(b"{}").hexdigest()}
    headers = {f"X-Crewyard-{name}": value for name, value in values.items()}
    return _call(inputs, "PUT", path, {}, inputs["other_token"], **headers)


@probe
@waits
def variables_of_the_project(inputs):
    return _call(inputs, "GET", f"/v1/projects/{inputs['project']}/env")


@probe
@waits
def runs_of_everybody(inputs):
    return _call(inputs, "GET", "/v1/runs")


@probe
@waits
def a_run_of_its_own(inputs):
    return _call(inputs, "POST", "/v1/runs", {"deployment": inputs["project"]})
