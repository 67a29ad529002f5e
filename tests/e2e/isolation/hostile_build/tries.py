"""The list of all attempts. One returns what it got, or raises what stopped it.

`places` says where everything is. In the control, where nothing is fenced, it also holds what a thief needs.
"""

import importlib
import threading
import time

ALL = {}
SECONDS = 240
ALONE = ("kernel", "search")
PARTS = (*ALONE, "network", "registry", "service")


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
    """How each went, by name: first what forks, one after the other; then what waits, beside one another."""
    for part in PARTS:
        importlib.import_module(part)
    found = {name: {"stopped": False, "how": "it never came back"} for name in ALL}
    threads = []
    for name, function in ALL.items():

        def work(name=name, function=function):
            found[name] = _tried(function, places)

        if function.__module__ in ALONE:
            work()
        else:
            threads.append(threading.Thread(target=work, daemon=True))
    for thread in threads:
        thread.start()
    end = time.monotonic() + SECONDS
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    return dict(found)
