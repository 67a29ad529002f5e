"""Holes in what strangers say: requests (X1), values in lines (X7), names (X8), deliveries (X9)."""

from tests.security.holes.hole import Hole, hole

HOSTILE = "tests/unit/api/test_hostile.py"
CONNECTIONS = "tests/unit/api/test_connections.py"
ANSWERS = "tests/unit/api/test_answers.py"
SIGNATURE = "tests/unit/api_hooks/test_signature.py"
HOOKS = "tests/cluster/api_http/test_hooks.py"
MASK = "tests/unit/runner/test_mask.py"
READER = "tests/unit/api/test_independent_reader.py"
ARTIFACTS = "tests/unit/api/test_artifacts.py"

HOLES: tuple[Hole, ...] = (
    hole(
        "X1", "a body is unpacked", "api/connections.py",
        "auto_decompress=False", "auto_decompress=True", CONNECTIONS,
    ),
    hole(
        "X1", "a body has any length", "api/body.py",
        "if declared is not None and declared > most:", "if False:", CONNECTIONS,
    ),
    hole(
        "X1", "connections without number", "api/connections.py",
        "if self._count > self._most:", "if False:", f"{CONNECTIONS}::test_who_waits_longest_makes_room",
    ),
    hole(
        "X1", "a body is nested as deep as it likes", "api/body.py",
        "    if too_deep(value):\n        raise errors.invalid(_DEEP)\n    return value",
        "    return value", ANSWERS,
    ),
    hole(
        "X1", "half a character is taken", "api/body.py",
        'if b"\\\\u" in raw:', "if False:", ANSWERS,
    ),
    hole(
        "X7", "values are not hidden", "runner/pid1/mask.py",
        "if form in line:", "if False:", MASK,
    ),
    hole(
        "X7", "values are hidden in one form only", "runner/pid1/mask.py",
        "forms |= {part, *(text[1:-1] for text in written)}", "forms |= {part}", MASK,
    ),
    hole(
        "X8", "a line of a stream is not JSON", "api/frames.py",
        'b"data: " + encode(data) + b"\\n\\n"',
        'b"data: " + str(data.get("message", "")).encode() + b"\\n\\n"', READER,
    ),
    hole(
        "X8", "an artifact's name climbs", "api/internal/artifacts.py",
        'if "\\0" in name or any(part in ("", ".", "..") for part in name.split("/")):', "if False:",
        "tests/unit/api_internal/test_runs.py::test_a_hostile_name_is_refused_for_good",
    ),
    hole(
        "X8", "an artifact is shown, not stored", "api/translate/artifacts.py",
        'f"attachment; filename', 'f"inline; filename', ARTIFACTS,
    ),
    hole(
        "X8", "an artifact's name breaks out of its header", "api/translate/artifacts.py",
        'replace("\\\\", "_").replace(\'"\', "_")', 'replace("\\\\", "_")', ARTIFACTS,
    ),
    hole(
        "X8", "a download leaves its directory", "client/crewyard/cli/artifacts.py",
        'wrong = any(part in ("", ".", "..") for part in parts) or "\\0" in name', "wrong = False",
        "tests/unit/client/test_command_line.py::test_an_artifact_is_never_written_outside",
    ),
    hole(
        "X9", "one good proof of several is enough", "api/hooks/signature.py",
        "return bool(good) and all(good)", "return any(good)", SIGNATURE,
    ),
    hole(
        "X9", "an empty secret fits", "api/hooks/signature.py",
        "if proof is None or not secret:", "if proof is None:", SIGNATURE,
    ),
    hole(
        "X9", "a signature's beginning is enough", "api/hooks/signature.py",
        "hmac.compare_digest(given, digest) for given", "given[:2] == digest[:2] for given", SIGNATURE,
    ),
    hole(
        "X9", "a delivery's proof is not asked for", "api/routes/hooks.py",
        "if not signature.fits(proof, secret, body.hmac) or project is None:", "if project is None:", HOOKS,
    ),
    hole(
        "X9", "a delivery under another id is another one", "api/hooks/memory.py",
        'return [*found, f"body:{body.sha256}"] if proof.signed or not found else found',
        "return found", HOOKS,
    ),
)  # fmt: skip
