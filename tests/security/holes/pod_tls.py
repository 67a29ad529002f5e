"""TLS between pods, API server and controller: guards whose removal a test must notice."""

from tests.security.holes.hole import Hole, hole

RUNNER = "tests/unit/runner/api/test_tls.py"
SITE = "tests/unit/internal_tls/test_site.py"
PORTS = "tests/unit/api/routing/test_pod_calls.py"
CONNECTION = "runner/pid1/api/http.py"

HOLES: tuple[Hole, ...] = (
    hole(
        "X6", "a runner accepts any authority of its image", CONNECTION,
        "            if self._authorities:\n", "            if not self._authorities:\n",
        f"{RUNNER}::test_no_crew_runs_behind_a_certificate_that_is_not_accepted",
    ),
    hole(
        "X6", "a runner accepts a certificate of any name", CONNECTION,
        "                context.load_verify_locations(cadata=self._authorities)\n",
        "                context.load_verify_locations(cadata=self._authorities)\n"
        "                context.check_hostname = False\n",
        f"{RUNNER}::test_no_crew_runs_behind_a_certificate_that_is_not_accepted",
    ),
    hole(
        "X6", "a build accepts any certificate", "build/api_client.py",
        "            self._context.load_verify_locations(cadata=authorities)\n",
        "            self._context.check_hostname = False\n"
        "            self._context.verify_mode = ssl.CERT_NONE\n",
        "tests/unit/build/test_api_client.py",
    ),
    hole(
        "X6", "plain calls of pods are served although they are off", "internal_tls/ports.py",
        "if plain or not path.startswith(_PREFIX):", "if True:", PORTS,
    ),
    hole(
        "X6", "the application serves everything on both ports", "api/app.py",
        "([ports.separate(config.pod_tls.plain, _refuse)] if", "([] if", PORTS,
    ),
    hole(
        "X6", "the port of pods serves the whole API", "internal_tls/ports.py",
        "        if path.startswith(_PREFIX):", "        if True:", PORTS,
    ),
    hole(
        "X6", "silent clients use up the handshakes", "internal_tls/site.py",
        "if len(self._handshakes) >= MAX_HANDSHAKES:", "if False:",
        f"{SITE}::test_silent_clients_do_not_block_others",
    ),
    hole(
        "X6", "the controller has connections without number", "controller/process.py",
        "raise_file_limit(MAX_CONNECTIONS)", "raise_file_limit(1 << 20)",
        "tests/unit/controller/test_report_port.py"
        "::test_build_reports_beside_connections_that_send_nothing",
    ),
    hole(
        "X6", "the controller takes plain results although they are off", "controller/process.py",
        "[ports.separate(tls.plain, _refuse)]", "[]",
        "tests/unit/controller/test_report_port.py",
    ),
    hole(
        "X6", "a build reports without its authorities", "build/report.py",
        "_TIMEOUT_SECONDS, settings.internal_ca\n", "_TIMEOUT_SECONDS\n",
        "tests/unit/controller/test_report_port.py::test_build_reports_by_tls",
    ),
)  # fmt: skip
