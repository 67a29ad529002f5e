"""A pod that waits for a build asks the controller until it gets one."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from build import wait
from build.json_object import BuildSettingsInvalid

VARIABLES = {"CREWYARD_DEPLOYMENT": "dep-a", "CREWYARD_TOKEN": "of the build", "CREWYARD_BUILD": "{}"}
BOUND = (200, {"state": "bound", "variables": {**VARIABLES, "PATH": "/elsewhere"}})
WAITING = (200, {"state": "waiting"})


@pytest.fixture
def controller():
    """A server that gives the answers in turn, and records the calls."""
    answers, calls = [], []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            calls.append((self.path, self.headers["Authorization"], body))
            status, answer = answers.pop(0)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        environ = {
            "CREWYARD_CONTROLLER_URL": f"http://127.0.0.1:{server.server_address[1]}",
            "CREWYARD_TOKEN": "waits",
            "CREWYARD_BUILDER": "warm-demo-1-a1",
            "CREWYARD_POD_UID": "u",
        }
        yield environ, answers, calls
        server.shutdown()
        thread.join()


def test_the_pod_gets_the_variables_of_its_build_and_no_other(controller):
    environ, answers, calls = controller
    answers += [WAITING, WAITING, BOUND]
    pauses = []
    assert wait.wait_for_build(environ, pauses.append) == VARIABLES
    path, token, body = calls[0]
    assert path == "/internal/v1/builders/warm-demo-1-a1/wait" and token == "Bearer waits"
    assert body == {"pod_uid": "u", "wait_seconds": 20}
    assert pauses == []


def test_it_asks_again_after_a_growing_pause(controller):
    environ, answers, _ = controller
    answers += [(503, {}), (500, b"broken"), (200, b"no JSON"), *[(503, {})] * 9, BOUND]
    pauses = []
    assert wait.wait_for_build(environ, pauses.append) == VARIABLES
    assert len(pauses) == 12 and pauses[0] <= 0.2 and max(pauses) <= 5.0
    assert pauses[-1] > 2.0


@pytest.mark.parametrize("status", [401, 404])
def test_a_pod_that_the_controller_does_not_know_ends(controller, status):
    environ, answers, _ = controller
    answers.append((status, {}))
    with pytest.raises(wait.NoBuild, match=str(status)):
        wait.wait_for_build(environ)


def test_a_missing_variable_is_named(controller):
    environ, _, _ = controller
    with pytest.raises(BuildSettingsInvalid, match="CREWYARD_BUILDER"):
        wait.wait_for_build({**environ, "CREWYARD_BUILDER": ""})
