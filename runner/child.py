"""The crew's process. Started by process 1 as `python3 -I -S child.py`; idle until the claim is granted."""

import os
import sys


def main() -> int:
    """Wait for the task on descriptor 4, run the crew, and return 0 if the entrypoint returned, else 1."""
    import importlib

    here = os.path.dirname(os.path.abspath(__file__))
    # At the end of the path, so the crew's own modules take precedence.
    sys.path.append(here)
    code: int = importlib.import_module("crewyard_runtime.crew").main(here)
    return code


if __name__ == "__main__":
    sys.exit(main())
