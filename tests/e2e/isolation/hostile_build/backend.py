"""A build backend that tries to get at what is not its own, tells how it went, and gives up."""

import json
import sys

import tries


def get_requires_for_build_wheel(config_settings=None):
    """The first thing that pip asks."""
    with open("places.json") as file:
        places = json.load(file)
    print("TRIED " + json.dumps(tries.everything(places)), file=sys.stderr, flush=True)
    raise SystemExit(3)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Never comes to it."""
    return get_requires_for_build_wheel()
