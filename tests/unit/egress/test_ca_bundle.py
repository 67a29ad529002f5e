"""Own CA certificates in addition to the system's: one file, written before the process starts."""

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
FETCH_SCRIPT = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=120).status)"


@pytest.fixture
def server(tmp_path):
    """Yield the URL and certificate of an https server on localhost with a self-signed certificate."""
    made = certificate("localhost")
    file = tmp_path / "server.pem"
    file.write_text(made.text + made.key)
    https = HTTPServer(("127.0.0.1", 0), OkHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    https.socket = context.wrap_socket(https.socket, server_side=True)
    threading.Thread(target=https.serve_forever, daemon=True).start()
    yield f"https://localhost:{https.server_port}/", made.text, made.key
    https.shutdown()
    https.server_close()


class OkHandler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def fetch(address, **environment):
    argv = [sys.executable, "-m", "egress.ca_bundle", sys.executable, "-c", FETCH_SCRIPT, address]
    inherited = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return subprocess.run(
        argv, env={**inherited, **environment}, cwd=ROOT, capture_output=True, text=True, timeout=60
    )


def test_process_trusts_only_the_system_and_the_installations_cas(server):
    address, own, _ = server
    assert fetch(address, CREWYARD_CA=own).stdout == "200\n"
    refused = fetch(address, CREWYARD_CA="")
    assert refused.returncode != 0 and "CERTIFICATE_VERIFY_FAILED" in refused.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing", "no certificate"),
        ("-----BEGIN CERTIFICATE-----\nA\n", "no certificate"),
        ("x" * 40_000, "not a whole bundle"),
        ("-----BEGIN PRIVATE KEY-----", "certificates only"),
        # One such certificate in the file would make a process trust no CA at all, not even the system's.
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "certificate 1 of 1 is malformed"),
        ("-----BEGIN CERTIFICATE-----\nä\n-----END CERTIFICATE-----", "certificate 1 of 1 is malformed"),
    ],
)
def test_malformed_bundle_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        ca_bundle.checked_certificates(text)
    done = fetch("https://localhost:1/", CREWYARD_CA=text)
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith("CREWYARD_CA: ")


def test_system_bundle_comes_first_and_comments_are_dropped(server, tmp_path):
    _, own, _ = server
    system = tmp_path / "system.crt"
    system.write_text("SYSTEM\n")
    bundle = ca_bundle.bundle(f"# ours\n{own}\n# end\n", [tmp_path / "absent", system])
    assert bundle == f"SYSTEM\n{own}"
    assert ca_bundle.bundle(own, []) == own
