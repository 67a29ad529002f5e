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
TWO = """
import os, signal, sys, time
sys.path.insert(0, {root!r})
from actions.workflow import errors, step

def act(console):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(300)
    except errors.StepCanceled as canceled:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)
        canceled.acknowledge()
        console.log("the run is canceled")

sys.exit(step.run_step(act))
"""


def run(program):
    argv = [sys.executable, "-c", program.format(root=str(ROOT))]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no timers")
def test_a_signal_inside_a_destructor_still_stops_the_step():
    done = run(LOST)
    assert done.returncode == 130, done.stderr
    assert "still here\ncanceled\n" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there are no timers")
def test_a_second_signal_does_not_interrupt_the_handling_of_the_first():
    done = run(TWO)
    assert done.returncode == 0, done.stderr
    assert "the run is canceled" in done.stdout


@pytest.mark.parametrize("path", sorted((ROOT / "actions").rglob("*.py")), ids=lambda path: path.name)
def test_the_actions_import_only_the_standard_library(path):
    for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 11))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.startswith("actions.workflow") or name.partition(".")[0] in sys.stdlib_module_names
