"""Answers to questions that are asked again and again, for as long as nothing has changed.

A generation is the store's (`Database.generation`): with the first change of any
row all answers are forgotten, so nobody is ever told what is no longer so.
Called by `api.routing.endpoint` for what is answered from rows alone.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

MOST = 512
"""Answers that are kept; a page of 100 runs has 25 KB."""
LARGEST = 64 * 1024


@dataclass(frozen=True)
class Answer:
    """What was answered, without what belongs to one request."""

    body: bytes
    headers: Mapping[str, str]


class Remembered:
    """The answers of one operation in the present generation."""

    def __init__(self) -> None:
        self._generation: int | None = None
        self._answers: dict[Hashable, Answer] = {}

    def get(self, generation: int | None, question: Hashable) -> Answer | None:
        """What was answered to this question in this generation, or None."""
        return self._answers.get(question) if generation == self._generation else None

    def put(self, before: int | None, after: int | None, question: Hashable, answer: Answer) -> None:
        """Keeps an answer that was made from `before` to `after`, if nothing changed meanwhile."""
        if before is None or before != after or len(answer.body) > LARGEST:
            return
        if self._generation != before or len(self._answers) >= MOST:
            self._generation, self._answers = before, {}
        self._answers[question] = answer
