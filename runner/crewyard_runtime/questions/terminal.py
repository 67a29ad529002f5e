"""`ask` outside a run, at the terminal. Called by `ask`."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def ask_at_terminal(
    prompt: str, schema: Mapping[str, object] | None, choices: Sequence[object] | None
) -> object:
    """Read lines until one is an answer: a choice, or JSON that the schema allows; without both, any text."""
    shown = "" if choices is None else f" [{', '.join(map(str, choices))}]"
    while True:
        line = input(f"{prompt}{shown} ")
        if choices is not None:
            for choice in choices:
                if line in (str(choice), json.dumps(choice)):
                    return choice
            print(f"Answer one of {', '.join(map(str, choices))}.")
            continue
        try:
            return line if (schema or {}).get("type") == "string" else json.loads(line)
        except ValueError:
            if schema is None:
                return line
            print("Answer with JSON that fits the schema.")
