"""The tests of a JUnit report that took long and whose docstring does not say why.

`make test` prints them: `python -m tests.slow test-results/test.xml`. With --fail they are an error.
"""

import argparse
import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
SLOW_SECONDS = 20.0
WORD = "Slow:"
"""A docstring explains the duration after this word."""


@dataclass(frozen=True)
class TestDuration:
    """The seconds that a test took, with setup and teardown."""

    module: str
    function: str
    seconds: float

    @property
    def file(self) -> Path:
        """The file of the test."""
        return ROOT / f"{self.module.replace('.', '/')}.py"


def durations(report: str) -> Iterator[TestDuration]:
    """Yield the tests of a JUnit report. Pure."""
    for case in ElementTree.fromstring(report).iter("testcase"):
        name = case.get("name", "").partition("[")[0]
        yield TestDuration(case.get("classname", ""), name, float(case.get("time", "0")))


def explains(source: str, function: str) -> bool:
    """Return whether the docstring of a test function or of its module says why the test is slow. Pure."""
    module = ast.parse(source)
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in module.body if isinstance(node, functions) and node.name == function]
    return any(WORD in (ast.get_docstring(node) or "") for node in (module, *nodes))


def unexplained(report: str) -> dict[str, float]:
    """Return the slow tests without an explanation, with their seconds."""
    return {
        f"{duration.file.relative_to(ROOT)}::{duration.function}": duration.seconds
        for duration in sorted(durations(report), key=lambda one: one.seconds)
        if duration.seconds > SLOW_SECONDS
        and duration.file.exists()
        and not explains(duration.file.read_text(), duration.function)
    }


def main(arguments: list[str]) -> int:
    """Print the tests; return 1 with --fail if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.slow", description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("--fail", action="store_true", help="exit 1 if there is one")
    options = parser.parse_args(arguments)
    found = unexplained(options.report.read_text())
    for name, seconds in found.items():
        print(f"slow: {seconds:.0f} s: {name}: say why after '{WORD}' in its docstring")
    return 1 if found and options.fail else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
