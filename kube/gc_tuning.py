"""The garbage collector of a process that serves for months. Called by controller and facade when ready.

A full collection looks at every object there is: 150,000 after the imports alone, a tenth of a second in
which nobody is answered.
"""

import gc

YOUNG = 10_000
"""So many objects more than went, and those are looked at; Python's own 700 suits programs of seconds."""


def settle() -> None:
    """Takes all objects of now for good: collections look only at what comes after."""
    gc.freeze()
    gc.set_threshold(YOUNG, 10, 10)
