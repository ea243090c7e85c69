"""The problem of an object, with its causes; as values."""

from dataclasses import dataclass, field
from datetime import datetime

from pergola.operator.reconcile.picture import State, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An object that is not as it should be.

    Attributes:
        subject: Kind and key, such as `Pod garden/etcd-main-0`.
        since: When the problem began; None if that is unknown.
        log: The last line that the failing container logged.
        event: The last Event about the object.
        causes: What is behind the problem, most likely first.
        advice: What to do next, if known.
    """

    subject: str
    problem: str
    since: datetime | None = None
    log: str = ""
    event: str = ""
    causes: tuple["Finding", ...] = ()
    advice: str = ""

    @property
    def next_step(self) -> str:
        """The advice about the first cause that has some."""
        deeper = (cause.next_step for cause in self.causes)
        return next(filter(None, deeper), self.advice)


@dataclass(frozen=True, slots=True)
class Details:
    """Kind-specific details about an object, to add to its finding."""

    causes: tuple[Finding, ...] = ()
    advice: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to why a part of a Garden is as it is.

    Attributes:
        name: The subject of the question.
        component: The component that it belongs to; empty for a task without one.
        state: The state of its tasks.
        sentence: The answer in one sentence.
        tasks: Its tasks.
        blockers: Tasks that it has to wait for, if it has not started.
        findings: The problems of its objects, or of those of the blockers.
        next_step: What to do next, if known.
    """

    name: str
    component: str
    state: State
    sentence: str
    tasks: tuple[Task, ...] = ()
    blockers: tuple[Task, ...] = ()
    findings: tuple[Finding, ...] = field(default=())
    next_step: str = ""
