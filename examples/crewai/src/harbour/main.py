"""Runs the crew locally: `python -m harbour.main Hamburg`."""

import sys

from harbour.crew import Harbour


def run() -> None:
    """Print the report, which is also in artifacts/report.md."""
    inputs = {"harbour": sys.argv[1]} if len(sys.argv) > 1 else {}
    print(Harbour().crew().kickoff(inputs=inputs))


if __name__ == "__main__":
    run()
