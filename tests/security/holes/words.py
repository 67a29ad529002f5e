"""Holes in checks of untrusted input: requests (X1), values in lines (X7), names (X8), deliveries (X9)."""

from tests.security.holes.hole import Hole, hole

HOSTILE = "tests/unit/api/http/test_hostile_requests.py"
CONNECTIONS = "tests/unit/api/http/test_server.py"
ANSWERS = "tests/unit/api/http/test_responses.py"
SIGNATURE = "tests/unit/api/webhooks/test_signature.py"
HOOKS = "tests/cluster/api_http/test_hooks.py"
MASK = "tests/unit/runner/output/test_mask.py"
READER = "tests/unit/api/streaming/test_independent_reader.py"
ARTIFACTS = "tests/unit/api/v1/test_artifacts.py"
DISPOSITION = "tests/unit/api/v1/views/test_artifact_view.py::test_disposition_escapes_name"
POD_ARTIFACTS = "tests/unit/api/internal/test_runs.py::test_artifact_inside_a_repository_directory_is_refused"
DOWNLOADS = "tests/unit/client/test_service.py"

HOLES: tuple[Hole, ...] = (
    hole(
        "X1", "a body is unpacked", "http_server/connections.py",
        "auto_decompress=False", "auto_decompress=True", CONNECTIONS,
    ),
    hole(
        "X1", "a body has any length", "api/http/request_body.py",
        "if declared is not None and declared > limit:", "if False:", CONNECTIONS,
    ),
    hole(
        "X1", "connections without number", "http_server/connections.py",
        "if self._count > self._limit:", "if False:",
        "tests/unit/http_server/test_connections.py::test_longest_idle_connection_is_closed_at_the_limit",
    ),
    hole(
        "X1", "a body is nested as deep as it likes", "api/http/request_body.py",
        "    if too_deep(value):\n        raise errors.invalid(_TOO_DEEP)\n    return value",
        "    return value", ANSWERS,
    ),
    hole(
        "X1", "half a character is taken", "api/http/request_body.py",
        'if b"\\\\u" in raw:', "if False:", ANSWERS,
    ),
    hole(
        "X7", "values are not hidden", "runner/pid1/output/mask.py",
        "if form in line:", "if False:", MASK,
    ),
    hole(
        "X7", "values are hidden in one form only", "runner/pid1/output/mask.py",
        "forms |= {part, *(text[1:-1] for text in written)}", "forms |= {part}", MASK,
    ),
    hole(
        "X8", "a line of a stream is not JSON", "api/streaming/run_events.py",
        'return encode(event.data) if b"\\\\u" in event.json else event.json',
        'return str(event.data.get("message", "")).encode()', READER,
    ),
    hole(
        "X8", "an artifact's name climbs", "plan/file_names.py",
        'if "\\0" in name or any(part in ("", ".", "..") for part in name.split("/")):', "if False:",
        "tests/unit/api/internal/test_runs.py::test_hostile_artifact_name_is_refused",
        f"{DOWNLOADS}::test_a_hostile_name_is_refused_before_the_first_file",
    ),
    hole(
        "X8", "an artifact is shown, not stored", "api/v1/artifacts/view.py",
        'f"attachment; filename', 'f"inline; filename', ARTIFACTS,
    ),
    hole(
        "X8", "an artifact's name breaks out of its header", "api/v1/artifacts/view.py",
        'replace("\\\\", "_").replace(\'"\', "_")', 'replace("\\\\", "_")', DISPOSITION,
    ),
    hole(
        "X9", "one good proof of several is enough", "api/webhooks/signature.py",
        "return bool(matches) and all(matches)", "return any(matches)", SIGNATURE,
    ),
    hole(
        "X9", "an empty secret fits", "api/webhooks/signature.py",
        "if proof is None or not secret:", "if proof is None:", SIGNATURE,
    ),
    hole(
        "X9", "a signature's beginning is enough", "api/webhooks/signature.py",
        "hmac.compare_digest(signature, digest) for signature",
        "signature[:2] == digest[:2] for signature", SIGNATURE,
    ),
    hole(
        "X9", "a delivery's proof is not asked for", "api/webhooks/routes.py",
        "if not signature.verify(proof, secret, body.hmac) or project is None:", "if project is None:", HOOKS,
    ),
    hole(
        "X9", "a delivery under another id is another one", "api/webhooks/replay_protection.py",
        "return [*keys, of_body] if proof.signed", "return keys if proof.signed", HOOKS,
    ),
    hole(
        "X8", "a file below .git is stored", "api/internal/artifacts.py",
        "return checkout_problem(name)", "return None", POD_ARTIFACTS,
    ),
    hole(
        "X8", "a file below .git is downloaded", "plan/file_names.py",
        "relative_path_problem(name) or checkout_problem(name) or", "relative_path_problem(name) or",
        f"{DOWNLOADS}::test_a_hostile_name_is_refused_before_the_first_file",
    ),
    hole(
        "X8", "a short name of .git is downloaded", "plan/file_names.py",
        " or _SHORT_NAME.fullmatch(plain)", "",
        f"{DOWNLOADS}::test_a_hostile_name_is_refused_before_the_first_file",
    ),
    hole(
        "X8", "letters without width hide .git", "plan/file_names.py",
        'if unicodedata.category(letter) != "Cf"', "",
        f"{DOWNLOADS}::test_a_hostile_name_is_refused_before_the_first_file",
    ),
    hole(
        "X8", "a download replaces what is there", "client/crewyard/cli/download_directory.py",
        "if os.path.lexists(path) and not self._force", "if False",
        f"{DOWNLOADS}::test_files_are_replaced_by_force_alone",
    ),
    hole(
        "X8", "a download replaces what came meanwhile", "client/crewyard/cli/download_directory.py",
        "        if not self._force:\n            try:", "        if False:\n            try:",
        f"{DOWNLOADS}::test_a_file_made_during_the_download_stays",
    ),
)  # fmt: skip
