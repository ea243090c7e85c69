"""The answer to why an object is as it is: statements and next steps, as values."""

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
    """A statement about an object.

    Attributes:
        subject: The object or name that the statement is about, such as `Pod demo/web-0`; empty for
            the object in question.
        text: The fact, without a full stop; may be empty if the subject says it all.
        because: The cause, if the text does not say it.
        since: When it began; None if that is unknown.
        below: Statements that explain this one.
        advice: What to do about it, if known.
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
        """The advice about the deepest cause that has some."""
        return next(filter(None, (each.next_step for each in self.below)), self.advice)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The contribution of one explainer.

    Attributes:
        sentence: The verdict about the object, without its name, such as `is healthy`. The first
            explainer with a sentence decides; if one found a problem, the first of those.
        next_steps: Advice in addition to that of the statements.
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
    """The answer to why something is as it is.

    Attributes:
        name: The subject of the question.
        state: `ok`, `waiting`, `unhealthy`, `deleting`; for a task or component of a Garden, the
            state of its task.
        sentence: The answer in one sentence, without a full stop.
        next_steps: What to do next, most urgent first; empty if unknown.
        unread: One sentence for each thing that the caller has no permission to read.
        details: Data for programs, specific to this kind of subject.
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
        """Return the statements on one topic."""
        return tuple(each for each in self.statements if each.topic is topic)
