"""A source whose build takes a given time. Called by tests that need a build to be at work."""

SLOW = """
import time
from setuptools import setup
for number in range({seconds}):
    print("step", number, flush=True)
    time.sleep(1)
setup(name="slow", version="1", package_dir={{"": "lib"}}, packages=["slow"])
"""


def slow_source(seconds: int) -> dict[str, str]:
    """A tree whose installation takes a while, and says so."""
    return {
        "crew.toml": '[deployment]\nentrypoint = "slow.crew:kickoff"\n',
        "setup.py": SLOW.format(seconds=seconds),
        "lib/slow/__init__.py": "",
        "lib/slow/crew.py": "def kickoff(inputs):\n    return inputs\n",
    }
