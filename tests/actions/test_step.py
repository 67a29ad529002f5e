"""Steps: a signal is never lost, and the actions import only the standard library."""

import ast
import subprocess
import sys

import pytest

from tests.actions.runner import ROOT

LOST = """
import os, signal, sys, time
sys.path.insert(0, {root!r})
from actions.workflow import step

class Destroyed:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)  # the exception is raised here, and ignored

def act(console):
    Destroyed()
    console.log("still here")
    time.sleep(300)

sys.exit(step.run_step(act))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no timers")
def test_a_signal_inside_a_destructor_still_stops_the_step():
    done = subprocess.run(
        [sys.executable, "-c", LOST.format(root=str(ROOT))],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 130, done.stderr
    assert "still here\ncanceled\n" in done.stdout


@pytest.mark.parametrize("path", sorted((ROOT / "actions").rglob("*.py")), ids=lambda path: path.name)
def test_the_actions_import_only_the_standard_library(path):
    for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 11))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.startswith("actions.workflow") or name.partition(".")[0] in sys.stdlib_module_names
