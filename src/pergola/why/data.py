"""The JSON form of answers, the same for every kind."""

from datetime import datetime

from pergola.api.conditions import timestamp
from pergola.api.objects import JsonObject
from pergola.why.answer import Answer, Kind, Statement, Topic


def data_of(answer: Answer) -> JsonObject:
    """Return an answer as data for programs."""
    asked = answer.asked
    return {
        "name": answer.name,
        "object": {
            "apiVersion": asked.gvk.api_version,
            "kind": asked.gvk.kind,
            "namespace": asked.key.namespace,
            "name": asked.key.name,
        }
        if asked
        else None,
        "state": answer.state,
        "answer": answer.sentence,
        **answer.details,
        **{field: _all(answer, topic) for topic, field in _FIELDS.items()},
        "next": answer.next_steps[0] if answer.next_steps else "",
        "nextSteps": list(answer.next_steps),
        "notRead": list(answer.unread),
    }


_FIELDS = {
    Topic.WANTED: "wantedBy",
    Topic.DECIDED: "decisions",
    Topic.PROBLEM: "findings",
    Topic.WAITS: "waitsFor",
    Topic.BLOCKED: "deletionBlockedBy",
    Topic.FINALIZER: "finalizers",
    Topic.WRITTEN: "writers",
}
_OWN_FIELDS = (Kind.EVENT, Kind.LOG)


def _all(answer: Answer, topic: Topic) -> list[JsonObject]:
    return [_statement(each) for each in answer.about(topic)]


def _statement(statement: Statement) -> JsonObject:
    facts: JsonObject = {"event": "", "log": ""}
    for evidence in statement.evidence:
        if evidence.kind in _OWN_FIELDS:
            facts[evidence.kind.value] = evidence.text
    return {
        "object": statement.subject,
        "problem" if statement.topic is Topic.PROBLEM else "text": statement.text,
        "because": statement.because,
        "since": _time(statement.since),
        **facts,
        "evidence": [
            {"kind": each.kind.value, "text": each.text}
            for each in statement.evidence
            if each.kind not in _OWN_FIELDS
        ],
        "advice": statement.advice,
        "causes": [_statement(each) for each in statement.below],
    }


def _time(moment: datetime | None) -> str | None:
    return timestamp(moment) if moment else None
