"""Whether a LangChain runnable or LangGraph graph has a part that only `ainvoke` can run. Called by `call`.

`invoke` would begin and fail in the middle, at a coroutine function or a tool without a synchronous one;
`ainvoke` takes both. It is not the rule for all, since some parts (checkpointers) know `invoke` alone.
"""

from __future__ import annotations

_MOST = 10_000  # objects that are looked at
# Where runnables, graphs and their nodes hold what they consist of.
_PARTS = (
    "nodes", "bound", "steps", "steps__", "mapper", "runnable", "fallbacks", "branches", "default",
    "tools_by_name", "builder", "path",
)  # fmt: skip
# The asynchronous function of a part, and the synchronous one beside it.
_WAYS = (("afunc", "func"), ("coroutine", "func"), ("_atransform", "_transform"))


def only_async(found: object) -> bool:
    """By what the parts have, not by their classes. Never raises: what cannot be looked at is synchronous."""
    # The objects themselves, too: some make their parts anew at each look, and an id is free with its object.
    seen: dict[int, object] = {}
    left = [found]
    while left and len(seen) < _MOST:
        one = left.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, dict):
            left += one.values()
        elif isinstance(one, (list, tuple)):
            left += one
        elif any(_has(one, theirs) and not _has(one, ours) for theirs, ours in _WAYS):
            return True
        else:
            left += [part for name in _PARTS if not isinstance(part := _attribute(one, name), _PLAIN)]
    return False


_PLAIN = (str, bytes, int, float, type(None))


def _has(one: object, name: str) -> bool:
    return callable(_attribute(one, name))


def _attribute(one: object, name: str) -> object:
    try:
        return getattr(one, name, None)
    except Exception:  # a property that fails
        return None
