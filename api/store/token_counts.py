"""Tokens that a run's `usage` events report, in total and by model. Pure.

Made by the event logs, stored by `api.store.index.usage`. A crew chooses the names of models: only the first
MAX_MODELS of a run, and of a project's day, are kept apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_TOKENS = 10**9
"""Per event, so that a crew cannot distort the sum."""
MAX_MODELS = 20
OTHER_MODELS = "other"
"""The name that stands for all further models."""
MAX_MODEL_NAME_CHARACTERS = 200
ModelTokens = Mapping[str, tuple[int, int]]
"""Prompt and completion tokens by the name of a model."""


@dataclass
class TokenCounts:
    """The tokens of all calls; `models` has those of calls that name their model."""

    prompt: int = 0
    completion: int = 0
    models: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, type_: str, data: Mapping[str, Any]) -> None:
        """Add a `usage` event; other events and invalid counts add nothing."""
        if type_ != "usage":
            return
        prompt, completion = _count(data.get("prompt_tokens")), _count(data.get("completion_tokens"))
        self.prompt += prompt
        self.completion += completion
        model = data.get("model")
        if isinstance(model, str) and model and prompt + completion:
            # SQLite stores no lone surrogates.
            name = model[:MAX_MODEL_NAME_CHARACTERS].encode(errors="replace").decode()
            self.models = joined(self.models, {name: (prompt, completion)})


def joined(
    counted: ModelTokens, more: ModelTokens, most: int | None = MAX_MODELS
) -> dict[str, tuple[int, int]]:
    """Return the sums; a name above the first `most` counts as OTHER_MODELS. None: all names are kept."""
    sums = dict(counted)
    for name, (prompt, completion) in more.items():
        if most is not None and name not in sums and len(sums.keys() - {OTHER_MODELS}) >= most:
            name = OTHER_MODELS
        before = sums.get(name, (0, 0))
        sums[name] = (before[0] + prompt, before[1] + completion)
    return sums


def _count(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else 0
