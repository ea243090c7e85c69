"""Statements about problems of objects, and their kind-specific details."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from pergola.why.answer import Evidence, Kind, Statement, Topic


@dataclass(frozen=True, slots=True)
class Details:
    """Kind-specific details about an unhealthy object.

    Attributes:
        causes: What is behind the problem, most likely first.
        advice: What to do next, if known.
        log: The last line that the failing container logged.
    """

    causes: tuple[Statement, ...] = ()
    advice: str = ""
    log: str = ""


def problem_of(
    subject: str,
    problem: str,
    details: Details | None = None,
    *,
    since: datetime | None = None,
    event: str = "",
) -> Statement:
    """Return the statement about a problem of an object.

    Args:
        subject: Kind and key, such as `Pod garden/etcd-main-0`.
        since: When the problem began; None if that is unknown.
        event: The last Event about the object.
    """
    details = details or Details()
    return Statement(
        topic=Topic.PROBLEM,
        subject=subject,
        text=" ".join(problem.split()),
        since=since,
        evidence=tuple(_evidence(event, details.log)),
        below=details.causes,
        advice=details.advice,
    )


def _evidence(event: str, log: str) -> Iterator[Evidence]:
    if event:
        yield Evidence(Kind.EVENT, event)
    if log:
        yield Evidence(Kind.LOG, log)
