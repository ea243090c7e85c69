"""The interface of a subject."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference
from conformance.oracles import Answer, OracleModule
from pergola.api.objects import JsonObject, JsonValue


def cases(answer: Answer) -> int:
    """Return how many comparisons an answer stands for: one for each item of a list."""
    return len(answer.value) if isinstance(answer.value, list) else 1


class Subject(Protocol):
    """Questions of one kind, with both answers.

    Attributes:
        name: unique among all subjects.
        ask: the oracle's word for the question.
        title: for the documentation, such as "Health of objects".
        of: the oracle that answers.
        code: the packages of Pergola whose branches are counted.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 # described above
    @property
    def ask(self) -> str: ...  # noqa: D102
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def of(self) -> OracleModule: ...  # noqa: D102
    @property
    def code(self) -> tuple[str, ...]: ...  # noqa: D102

    def table(self) -> Iterator[JsonObject]:
        """Yield the questions that are always asked, and recorded."""
        ...

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return a strategy for random questions."""
        ...

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the part of an answer that is compared: no texts, and no random order."""
        ...

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Answer a question that the original answered, and yield the differences."""
        ...
