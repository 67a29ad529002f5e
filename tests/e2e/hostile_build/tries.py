"""The list of all attempts. One returns what it got, or raises what stopped it.

`places` says where everything is. In the control, where nothing is fenced, it also holds what a thief needs.
"""

import importlib
import threading

ALL = {}
SECONDS = 60
PARTS = ("search", "kernel", "network", "registry", "service")


class Stopped(Exception):
    """It came to nothing; the text says how one can tell."""


def attempt(function):
    """Puts a function on the list."""
    ALL[function.__name__] = function
    return function


def _tried(function, places):
    try:
        got = function(places)
    except (OSError, Stopped, ValueError, LookupError) as error:
        return {"stopped": True, "how": f"{type(error).__name__}: {error}"[:160]}
    return {"stopped": False, "how": str(got)[:160]}


def everything(places):
    """How each went, by name; they wait beside one another."""
    for part in PARTS:
        importlib.import_module(part)
    found = {name: {"stopped": False, "how": "it never came back"} for name in ALL}
    threads = []
    for name, function in ALL.items():

        def work(name=name, function=function):
            found[name] = _tried(function, places)

        threads.append(threading.Thread(target=work, daemon=True))
        threads[-1].start()
    for thread in threads:
        thread.join(SECONDS)
    return dict(found)
