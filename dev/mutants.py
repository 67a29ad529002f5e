"""Mutation testing with mutmut of pure and guarding code, in parts: `make mutants PART=signatures`.

    python -m dev.mutants [PART …]

A part is a set of modules and the unit tests that must notice any change of them. mutmut runs in a copy of
the tracked files below `test-results/mutants`; there `mutmut show NAME` prints a mutant, `mutmut browse` all
of them. docs/development.md has the last results. Called by the Makefile.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIES = ROOT / "test-results" / "mutants"
MUTANTS_AT_ONCE = 2
MAX_SECONDS = 3600
"""Time of one part; what is not checked by then counts as not killed."""
MESSAGES = r"^\s*raise \w+|\b_?log\.(info|warning|error|exception)\("
"""Lines whose mutants change only the text of an error or of a log line."""


@dataclass(frozen=True)
class MutationPart:
    """Modules, the tests that guard them, and the least share of killed mutants in percent."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    floor: int


def _files(pattern: str) -> list[str]:
    """Return the files of one directory that match."""
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(pattern))


PARTS = {
    "decisions": MutationPart(
        ("controller/run/decide.py", "controller/run/outcome.py", "controller/project/decide.py"),
        ("tests/unit/controller/run", "tests/unit/controller/project"),
        99,
    ),
    "activation": MutationPart(
        tuple(f"controller/project/{name}.py" for name in ("activation", "coalesce", "revision", "phases")),
        ("tests/unit/controller/project",),
        99,
    ),
    "addresses": MutationPart(
        ("egress/addresses.py",),
        ("tests/unit/egress/test_addresses.py", "tests/unit/egress/test_forbidden.py"),
        97,
    ),
    "secrets": MutationPart(
        (
            "crds/secrets/use.py",
            "crds/queues/build_order.py",
            "controller/build_proof/proof.py",
            "controller/build_proof/proven_digests.py",
        ),
        ("tests/unit/crds/secrets", "tests/unit/crds/queues", "tests/unit/controller/build_proof"),
        97,
    ),
    "admission": MutationPart(
        ("controller/run/quota.py", "controller/source/host_limits.py", "controller/runtime/cache.py"),
        (
            "tests/unit/controller/run/test_quota.py",
            "tests/unit/controller/source/test_polling.py",
            "tests/unit/controller/runtime/test_cache.py",
        ),
        99,
    ),
    "claim": MutationPart(
        ("api/store/index/claims/claim_decision.py", "api/v1/idempotency.py"),
        ("tests/unit/api/store/index/test_claim_decision.py", "tests/unit/api/v1/runs/test_idempotency.py"),
        99,
    ),
    "auth": MutationPart(
        ("api/auth/scopes.py", "api/auth/workflows.py", "api/auth/unverified.py", "api/auth/principal.py"),
        tuple(
            f"tests/unit/api/{name}.py"
            for name in (
                "auth/test_scopes",
                "auth/test_principal",
                "auth/test_permissions",
                "auth/test_workflows",
                "auth/test_providers",
                "v1/test_proven_commits",
            )
        ),
        99,
    ),
    "archive": MutationPart(
        ("build/source/archive.py", "build/source/tar.py", "build/source/tree.py"),
        ("tests/unit/build/source",),
        99,
    ),
    "signatures": MutationPart(
        ("api/webhooks/signature.py", "api/webhooks/replay_protection.py", "crds/pod_tokens.py"),
        ("tests/unit/api/webhooks", "tests/unit/crds/test_pod_tokens.py"),
        96,
    ),
    "warm": MutationPart(
        (
            "controller/deployment/warm/binding.py",
            "controller/deployment/warm/decide.py",
            "controller/pods/waiting.py",
            "controller/run/warm/binding.py",
        ),
        tuple(
            f"tests/unit/controller/{name}"
            for name in ("deployment/warm", "run/warm", "pods/test_waiting.py")
        ),
        99,
    ),
    "deployments": MutationPart(
        tuple(f"controller/deployment/{name}.py" for name in ("build_result", "decide")),
        ("tests/unit/controller/deployment",),
        99,
    ),
    "views": MutationPart(
        tuple(f"api/v1/{kind}/view.py" for kind in ("artifacts", "deployments", "keys", "projects", "runs")),
        ("tests/unit/api/v1/views", "tests/unit/api/v1/test_proven_commits.py"),
        98,
    ),
    "sign-in": MutationPart(
        tuple(
            f"api/auth/{name}.py"
            for name in ("api_keys", "authenticate", "jwks", "kubernetes", "oidc", "providers", "ttl_cache")
        ),
        ("tests/unit/api/auth",),
        94,
    ),
    "pods": MutationPart(
        tuple(
            f"controller/pods/{name}.py"
            for name in ("api_address", "ceilings", "egress", "placement", "run_egress")
        ),
        ("tests/unit/controller/pods", "tests/unit/controller/project/test_egress_policy.py"),
        97,
    ),
    "deadlines": MutationPart(
        tuple(f"controller/deployment/{name}.py" for name in ("deadlines", "steps")),
        ("tests/unit/controller/deployment",),
        98,
    ),
    "other-views": MutationPart(
        tuple(f"api/v1/{kind}/view.py" for kind in ("deliveries", "env", "schedules", "uploads", "usage")),
        ("tests/unit/api/v1/views", "tests/unit/api/v1/env", "tests/unit/api/v1/test_usage.py"),
        99,
    ),
    "packages": MutationPart(
        tuple(
            f"plan/packages/{name}.py"
            for name in ("own_project", "project_table", "requirements", "workspace")
        ),
        ("tests/unit/plan/packages",),
        97,
    ),
    "locks": MutationPart(
        (
            *(
                f"plan/packages/{name}.py"
                for name in ("dependencies", "local_projects", "pip_log", "poetry_table")
            ),
            "plan/packages/locks/*.py",
        ),
        ("tests/unit/plan/packages",),
        97,
    ),
    "base-images": MutationPart(("plan/base/*.py",), ("tests/unit/plan/base",), 98),
    "configuration": MutationPart(("plan/config/*.py",), ("tests/unit/plan/config",), 98),
    "entrypoints": MutationPart(
        # mutmut's `*` also matches directories.
        (*_files("plan/*.py"), "plan/discovery/*.py", "plan/inputs/*.py"),
        (
            "tests/unit/plan/inputs",
            "tests/unit/plan/config",
            "tests/unit/plan/discovery",
            *_files("tests/unit/plan/test_*.py"),
            "tests/unit/plan/base/test_read.py",
            "tests/unit/plan/packages/test_declaring.py",
        ),
        97,
    ),
}


def settings(part: MutationPart, top: Sequence[str]) -> str:
    """Return mutmut's setup.cfg; `top` are the names in the root of the repository. Pure."""
    packages = sorted({module.partition("/")[0] for module in part.modules})
    lists = {
        "source_paths": packages,
        "only_mutate": part.modules,
        "also_copy": [name for name in top if name not in {*packages, "tests", "pyproject.toml"}],
        "do_not_mutate_patterns": [MESSAGES],
        "pytest_add_cli_args": ["-p", "no:cacheprovider"],
        "pytest_add_cli_args_test_selection": part.tests,
    }
    lines = ["[mutmut]"]
    for name, values in lists.items():
        lines += [f"{name}=", *(f"    {value}" for value in values)]
    return "\n".join(lines) + "\n"


def killed_percent(stats: dict[str, int]) -> float:
    """Return the share of mutants that a test noticed, by failing or by not ending. Pure."""
    return 100 * (stats["killed"] + stats["timeout"] + stats["segfault"]) / max(1, stats["total"])


def run_part(name: str, part: MutationPart) -> bool:
    """Run a part and print its result; return whether it reaches its floor."""
    place = COPIES / name
    shutil.rmtree(place, ignore_errors=True)
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    files = [path for path in tracked.stdout.split("\0") if path and (ROOT / path).is_file()]
    for path in files:
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, place / path)
    (place / "setup.cfg").write_text(settings(part, sorted({path.partition("/")[0] for path in files})))
    with (place / "mutmut.log").open("w") as log:
        try:
            _mutmut(place, "run", "--max-children", str(MUTANTS_AT_ONCE), stdout=log, timeout=MAX_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"{name}: stopped after {MAX_SECONDS} s")
    _mutmut(place, "export-cicd-stats")
    stats: dict[str, int] = json.loads((place / "mutants" / "mutmut-cicd-stats.json").read_text())
    if not sum(count for state, count in stats.items() if state != "total"):
        print(f"{name}: mutmut checked no mutant; see {place / 'mutmut.log'}")
        return False
    alive = [line.strip() for line in _mutmut(place, "results").splitlines() if ": " in line]
    print("\n".join(alive))
    percent = killed_percent(stats)
    counts = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in stats.items() if count)
    print(f"{name}: {percent:.1f} % killed (at least {part.floor} %): {counts}; in {place.relative_to(ROOT)}")
    return percent >= part.floor


def _mutmut(place: Path, *arguments: str, stdout: object = None, timeout: float | None = None) -> str:
    """Run mutmut in a copy; return what it prints, unless `stdout` takes it."""
    done = subprocess.run(
        [sys.executable, "-m", "mutmut", *arguments],
        cwd=place,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=stdout or subprocess.PIPE,  # type: ignore[call-overload]
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    return str(done.stdout or "")


def main(names: Sequence[str]) -> int:
    """Run the named parts, or all."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"there is no part {', '.join(unknown)}; choose from {', '.join(PARTS)}", file=sys.stderr)
        return 2
    reached = [run_part(name, PARTS[name]) for name in names or PARTS]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
