"""The answer to the question why an object is as it is: statements, what to do next, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue, Key


class Topic(StrEnum):
    """The subject of a statement; answers list them in this order."""

    WANTED = "wanted by"
    DECIDED = "decision"
    PROBLEM = "problem"
    WAITS = "waits for"
    BLOCKED = "deletion waits for"
    FINALIZER = "finalizer"
    WRITTEN = "last writer"


class Kind(StrEnum):
    """The kind of a piece of evidence."""

    SOURCE = "source"
    EVENT = "event"
    LOG = "log"
    FIELD = "field"


class Evidence(NamedTuple):
    """A fact that readers can check in the cluster."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One thing that is known about an object.

    Attributes:
        subject: The object or the name that the statement is about, such as `Pod demo/web-0`; empty
            if it is the object in question.
        text: What is so, without a full stop; may be empty if the subject says it all.
        because: The cause, if the text does not say it.
        since: When it began; None if that is unknown.
        below: The statements that explain it.
        advice: What to do about it, where that can be known.
    """

    topic: Topic
    subject: str = ""
    text: str = ""
    because: str = ""
    since: datetime | None = None
    evidence: tuple[Evidence, ...] = ()
    below: tuple["Statement", ...] = ()
    advice: str = ""

    @property
    def next_step(self) -> str:
        """The advice about the deepest cause that has one."""
        return next(filter(None, (each.next_step for each in self.below)), self.advice)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The contribution of one explainer.

    Attributes:
        sentence: The verdict about the object, without its name, such as `is healthy`. The first
            explainer that has one decides.
        next_steps: Advice besides that of the statements.
    """

    sentence: str = ""
    statements: tuple[Statement, ...] = ()
    next_steps: tuple[str, ...] = ()


class Asked(NamedTuple):
    """The object in question, as the API server has it."""

    gvk: GroupVersionKind
    key: Key
    obj: JsonObject

    def __str__(self) -> str:
        return f"{self.gvk.kind} {self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Why something is as it is.

    Attributes:
        name: What was asked about.
        state: `ok`, `waiting`, `unhealthy`, `deleting`; for a task or component of a Garden, the
            state of its task.
        sentence: The answer in one sentence, without a full stop.
        next_steps: What to do next, the most urgent first; empty if nothing is known.
        unread: One sentence for each thing that the caller may not read.
        details: Data for programs that only this kind of subject has.
    """

    name: str
    state: str
    sentence: str
    asked: Asked | None = None
    statements: tuple[Statement, ...] = ()
    next_steps: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    details: Mapping[str, JsonValue] = field(default_factory=dict)

    def about(self, topic: Topic) -> tuple[Statement, ...]:
        """Return the statements of one topic."""
        return tuple(each for each in self.statements if each.topic is topic)
