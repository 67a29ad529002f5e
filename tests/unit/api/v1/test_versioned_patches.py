"""Routes that patch an object say on which version they decided, or why none is needed."""

import ast
import re
from datetime import UTC, datetime
from pathlib import Path

from api.v1.env import view

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ROOT = Path(__file__).parents[4]
PATCH = re.compile(r"kube(\.at\([^)]*\))?\.patch\(")
WITHOUT_VERSION = {
    ("api/v1/deployments/create.py", "_keep"): "removes annotations, independently of the rest of the object",
    ("api/v1/deployments/routes.py", "cancel"): "the project of a Deployment of that uid never changes",
    ("api/v1/deployments/routes.py", "rollback"): "the project of a Deployment of that uid never changes",
    **{
        ("api/v1/env/routes.py", name): "the functions of `view` that make the patch set the version"
        for name in ("_write", "write")
    },
    ("api/v1/runs/routes.py", "cancel"): "the project of a Run of that uid never changes",
}


def test_a_patch_after_a_permission_check_names_the_version():
    functions = [
        (str(path.relative_to(ROOT)), function.name, ast.unparse(function))
        for path in (ROOT / "api/v1").rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.AsyncFunctionDef)
    ]
    unversioned = {
        (path, name) for path, name, text in functions if PATCH.search(text) and "resourceVersion" not in text
    }
    assert unversioned == set(WITHOUT_VERSION)


def test_the_variables_are_patched_with_a_version():
    secret = {"metadata": {"resourceVersion": "7"}}
    for patch in (
        view.replace_patch(secret, "demo", {"A": "1"}, NOW),
        view.variable_patch(secret, "demo", "A", None, NOW),
    ):
        assert patch["metadata"]["resourceVersion"] == "7"
