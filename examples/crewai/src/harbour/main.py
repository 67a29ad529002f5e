"""Runs the crew on a laptop: `python -m harbour.main Hamburg`."""

import sys

from harbour.crew import Harbour


def run() -> None:
    """Prints the report, which is in artifacts/report.md too."""
    inputs = {"harbour": sys.argv[1]} if len(sys.argv) > 1 else {}
    print(Harbour().crew().kickoff(inputs=inputs))


if __name__ == "__main__":
    run()
