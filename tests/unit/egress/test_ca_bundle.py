"""Own authorities besides the system's: in one file, before the process begins."""

import os
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from egress import ca_bundle
from tests.testbed.certificates import certificate

ROOT = Path(__file__).parents[3]
LOOK = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=30).status)"


@pytest.fixture
def server(tmp_path):
    """An https server on localhost that vouches for itself: its address and its certificate."""
    made = certificate("localhost")
    file = tmp_path / "server.pem"
    file.write_text(made.text + made.key)
    found = HTTPServer(("127.0.0.1", 0), Answering)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    found.socket = context.wrap_socket(found.socket, server_side=True)
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield f"https://localhost:{found.server_port}/", made.text, made.key
    found.shutdown()
    found.server_close()


class Answering(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def look(address, **environment):
    argv = [sys.executable, "-m", "egress.ca_bundle", sys.executable, "-c", LOOK, address]
    inherited = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return subprocess.run(
        argv, env={**inherited, **environment}, cwd=ROOT, capture_output=True, text=True, timeout=60
    )


def test_a_process_trusts_the_installations_authorities_and_no_others(server):
    address, own, _ = server
    assert look(address, CREWYARD_CA=own).stdout == "200\n"
    refused = look(address, CREWYARD_CA="")
    assert refused.returncode != 0 and "CERTIFICATE_VERIFY_FAILED" in refused.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing", "no certificate"),
        ("-----BEGIN CERTIFICATE-----\nA\n", "no certificate"),
        ("x" * 40_000, "no whole bundle"),
        ("-----BEGIN PRIVATE KEY-----", "certificates only"),
        # With one such in its file a process would trust nobody, the system's authorities neither.
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "certificate 1 of 1 cannot be read"),
        ("-----BEGIN CERTIFICATE-----\nä\n-----END CERTIFICATE-----", "certificate 1 of 1 cannot be read"),
    ],
)
def test_what_is_no_list_of_authorities_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        ca_bundle.check(text)
    done = look("https://localhost:1/", CREWYARD_CA=text)
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith("CREWYARD_CA: ")


def test_the_systems_list_comes_first_and_remarks_are_left_out(server, tmp_path):
    _, own, _ = server
    system = tmp_path / "system.crt"
    system.write_text("SYSTEM\n")
    whole = ca_bundle.bundle(f"# ours\n{own}\n# end\n", [tmp_path / "absent", system])
    assert whole == f"SYSTEM\n{own}"
    assert ca_bundle.bundle(own, []) == own
