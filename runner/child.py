"""The crew's own process. Started by process 1 as `python3 -I -S child.py`; does nothing before the grant."""

import os
import sys


def main() -> int:
    """Waits for the task on descriptor 4, runs the crew, gives the exit code: 0 where it returned."""
    import importlib

    here = os.path.dirname(os.path.abspath(__file__))
    # At the very end: whatever the crew calls its own modules comes first.
    sys.path.append(here)
    code: int = importlib.import_module("crewyard_runtime.crew").main(here)
    return code


if __name__ == "__main__":
    sys.exit(main())
