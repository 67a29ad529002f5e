"""What was read from the index, for as long as nothing in it changes. Called by `api.auth.api_keys` and the claims.

A generation is the index's (`Database.generation`); where it is not known, nothing is remembered.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Lasting(Generic[Question, Answer]):
    """Answers of the present generation, at most `most`."""

    def __init__(self, generation: Callable[[], int | None], most: int) -> None:
        self._generation = generation
        self._most = most
        self._of: int | None = None
        self._answers: dict[Question, Answer] = {}

    def now(self) -> int | None:
        """The present generation: to be taken before reading, and given to `put`."""
        return self._generation()

    def get(self, question: Question) -> Answer | None:
        """The answer, if nothing has changed since it was read."""
        now = self._generation()
        return self._answers.get(question) if now is not None and now == self._of else None

    def put(self, before: int | None, question: Question, answer: Answer) -> None:
        """Keeps an answer that was read from the generation `before` on, if it still is that one."""
        if before is None or before != self._generation():
            return
        if self._of != before or len(self._answers) >= self._most:
            self._of, self._answers = before, {}
        self._answers[question] = answer
