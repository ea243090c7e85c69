"""The operator's report in `lastOperation.description` about the tasks of its flow."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

_WAIT: Final = re.compile(r" \((?P<subject>[A-Za-z]+ [^\s:]+): (?P<problem>.*)\)\Z", re.DOTALL)
_MORE: Final = re.compile(r", and \d+ more\Z")


class Reported(NamedTuple):
    """An object that a running task waits for; empty if the report names none."""

    subject: str = ""
    problem: str = ""


def running(description: str, names: Iterable[str]) -> Mapping[str, Reported]:
    """Return the running tasks that a description names, with the object that each waits for.

    Args:
        names: The names of all tasks, one of which may be a prefix of another.
    """
    longest_first = sorted(names, key=len, reverse=True)
    begins: list[tuple[int, str]] = []
    at = 0
    while at < len(description):
        name = next((name for name in longest_first if description.startswith(name, at)), None)
        if name is not None and _is_whole(description, at + len(name)):
            begins.append((at, name))
            at += len(name)
        following = description.find(", ", at)
        at = following + 2 if following >= 0 else len(description)
    ends = [begin - 2 for begin, _ in begins[1:]] + [len(description)]
    return {
        name: _wait(description[begin + len(name) : end])
        for (begin, name), end in zip(begins, ends, strict=False)
    }


def began(description: str, flows: Iterable[str]) -> str:
    """Return the flow that has just begun; empty if the description says something else."""
    return next((flow for flow in flows if description == f"Starting {flow}"), "")


def finished(description: str, flows: Iterable[str]) -> str:
    """Return the flow that has just finished; empty if the description says something else."""
    return next((flow for flow in flows if description == f"{flow} finished"), "")


def _is_whole(description: str, end: int) -> bool:
    """Return whether a name ends here, so that it is not the beginning of another word."""
    return description[end : end + 2] in ("", ", ", " (")


def _wait(text: str) -> Reported:
    found = _WAIT.fullmatch(text)
    if found is None:
        return Reported()
    return Reported(found["subject"], _MORE.sub("", found["problem"]))
