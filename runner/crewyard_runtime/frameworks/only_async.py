"""Detects LangChain runnables and LangGraph graphs with a part that only `ainvoke` can run. Called by `call`.

`invoke` would fail in the middle at a coroutine function or a tool without a synchronous form; `ainvoke` runs
both. It is not the default, since some parts (checkpointers) support only `invoke`.
"""

from __future__ import annotations

_MAX_OBJECTS = 10_000  # visited at most
# Attributes in which runnables, graphs and nodes hold their parts.
_PARTS = (
    "nodes", "bound", "steps", "steps__", "mapper", "runnable", "fallbacks", "branches", "default",
    "tools_by_name", "builder", "path",
)  # fmt: skip
# The attributes of a part's asynchronous function and of its synchronous counterpart.
_FUNCTION_PAIRS = (("afunc", "func"), ("coroutine", "func"), ("_atransform", "_transform"))


def only_async(runnable: object) -> bool:
    """Return whether a part has only an asynchronous function. Never raises; skips unreadable parts."""
    # Keep the objects: some create their parts on each access, and Python reuses the id of a freed object.
    seen: dict[int, object] = {}
    pending = [runnable]
    while pending and len(seen) < _MAX_OBJECTS:
        item = pending.pop()
        if id(item) in seen:
            continue
        seen[id(item)] = item
        if isinstance(item, dict):
            pending += item.values()
        elif isinstance(item, (list, tuple)):
            pending += item
        elif any(_has(item, only) and not _has(item, sync) for only, sync in _FUNCTION_PAIRS):
            return True
        else:
            pending += [part for name in _PARTS if not isinstance(part := _attribute(item, name), _PLAIN)]
    return False


_PLAIN = (str, bytes, int, float, type(None))


def _has(part: object, name: str) -> bool:
    return callable(_attribute(part, name))


def _attribute(part: object, name: str) -> object:
    try:
        return getattr(part, name, None)
    except Exception:  # a property that fails
        return None
