"""What is wrong with an object and why, down to the causes; as values."""

from dataclasses import dataclass, field
from datetime import datetime

from pergola.operator.garden.picture import State, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An object that is not as it should be.

    Attributes:
        subject: Kind and key, such as `Pod garden/etcd-main-0`.
        since: When the problem began; None if that is unknown.
        log: The last line that the container in trouble wrote.
        event: The last Event about the object.
        causes: What is behind the problem, the most likely one first.
        advice: What to do next, where it can be known.
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
        """What to do next about the first cause that anything is known about."""
        deeper = (cause.next_step for cause in self.causes)
        return next(filter(None, deeper), self.advice)


@dataclass(frozen=True, slots=True)
class Details:
    """What a kind adds to the finding about one of its objects."""

    causes: tuple[Finding, ...] = ()
    advice: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Why something of a Garden is as it is.

    Attributes:
        name: What was asked about.
        component: The component that it belongs to; empty if it is a task without one.
        state: The state of its tasks.
        sentence: The answer in one sentence.
        tasks: Its tasks.
        blockers: Tasks that it has to wait for, if it has not started.
        findings: What is wrong with its objects, or with those of the blockers.
        next_step: What to do next, where it can be known.
    """

    name: str
    component: str
    state: State
    sentence: str
    tasks: tuple[Task, ...] = ()
    blockers: tuple[Task, ...] = ()
    findings: tuple[Finding, ...] = field(default=())
    next_step: str = ""
