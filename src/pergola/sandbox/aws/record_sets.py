"""Record sets of Route 53 as AWS treats them, where moto is more generous.

moto deletes records even if the request has wrong values, accepts a CNAME beside other records, and
applies the first half of a request that fails in the middle. AWS also escapes `*` in names.
"""

from typing import Final, NamedTuple
from xml.etree.ElementTree import Element, fromstring

from aiohttp import web

from pergola.sandbox.aws.answers import Call, Refusal, child, children, text_at

_CHANGE: Final = "ChangeResourceRecordSets"
_LIST: Final = "ListResourceRecordSets"
_CNAME: Final = "CNAME"
_STAR, _ESCAPED = b"<Name>*.", rb"<Name>\052."


class _Key(NamedTuple):
    """The identity of a record set."""

    zone: str
    name: str
    type: str
    routing: str


_Content = tuple[str, tuple[str, ...], str]
"""TTL, values, target of an alias."""


class RecordSets:
    """The record sets that were created through this AWS."""

    def __init__(self) -> None:
        self._present: dict[_Key, _Content] = {}

    def refusal(self, call: Call, path: str, body: bytes) -> Refusal | None:
        """Return AWS's refusal of a change, or None if AWS would carry it out."""
        if call.service != "route53" or call.operation != _CHANGE:
            return None
        problem = self._problem(path, body)
        return Refusal("InvalidChangeBatch", f"[{problem}]") if problem else None

    def corrected(self, call: Call, path: str, body: bytes, answer: web.Response) -> web.Response:
        """Record a change that was carried out; write names as AWS does."""
        if answer.status != web.HTTPOk.status_code:
            return answer
        if call.operation == _CHANGE:
            self._present = self._after(path, body)
        if call.operation == _LIST and isinstance(answer.body, bytes):
            answer.body = answer.body.replace(_STAR, _ESCAPED)
        return answer

    def _problem(self, path: str, body: bytes) -> str:
        for action, key, content in _changes(path, body):
            title = f"name='{key.name}.', type='{key.type}'"
            if action == "DELETE" and key not in self._present:
                return f"Tried to delete resource record set [{title}] but it was not found"
            if action == "DELETE" and content != self._present[key]:
                return (
                    f"Tried to delete resource record set [{title}] but the values provided do not "
                    "match the current values"
                )
        names: dict[tuple[str, str], set[str]] = {}
        for key in self._after(path, body):
            names.setdefault((key.zone, key.name), set()).add(key.type)
        for (_, name), types in names.items():
            if _CNAME in types and len(types) > 1:
                return f"RRSet of type CNAME with DNS name {name}. is not permitted as it conflicts"
        return ""

    def _after(self, path: str, body: bytes) -> dict[_Key, _Content]:
        present = dict(self._present)
        for action, key, content in _changes(path, body):
            if action == "DELETE":
                present.pop(key, None)
            else:
                present[key] = content
        return present


def _changes(path: str, body: bytes) -> list[tuple[str, _Key, _Content]]:
    zone = path.rstrip("/").split("/")[-2]
    root = fromstring(body)  # noqa: S314 - our own requests
    return [_change(zone, each) for each in children(root, "ChangeBatch", "Changes")]


def _change(zone: str, element: Element) -> tuple[str, _Key, _Content]:
    records = child(element, "ResourceRecordSet")
    if records is None:
        raise ValueError("a change has no ResourceRecordSet")
    name = text_at(records, "Name").rstrip(".").lower()
    key = _Key(zone, name, text_at(records, "Type"), text_at(records, "SetIdentifier"))
    values = tuple(text_at(each, "Value") for each in children(records, "ResourceRecords"))
    return (
        text_at(element, "Action"),
        key,
        (text_at(records, "TTL"), values, text_at(records, "AliasTarget", "DNSName")),
    )
