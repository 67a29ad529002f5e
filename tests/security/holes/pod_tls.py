"""TLS between pods and the API server: guards whose removal a test must notice."""

from tests.security.holes.hole import Hole, hole

RUNNER = "tests/unit/runner/api/test_tls.py"
SITE = "tests/unit/api/tls/test_site.py"
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
        "X6", "plain calls of pods are served although they are off", "api/routing/pod_calls.py",
        "if plain or not path.startswith(_PREFIX):", "if True:", PORTS,
    ),
    hole(
        "X6", "the application serves everything on both ports", "api/app.py",
        "([pod_calls.separate(config.pod_tls.plain)] if", "([] if", PORTS,
    ),
    hole(
        "X6", "the port of pods serves the whole API", "api/routing/pod_calls.py",
        "        if path.startswith(_PREFIX):", "        if True:", PORTS,
    ),
    hole(
        "X6", "silent clients use up the handshakes", "api/tls/site.py",
        "if len(self._handshakes) >= MAX_HANDSHAKES:", "if False:",
        f"{SITE}::test_silent_clients_do_not_block_others",
    ),
)  # fmt: skip
