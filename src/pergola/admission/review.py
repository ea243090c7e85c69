"""The request that an API server sends to a webhook, and the answer (spec 12 §1.2)."""

from collections.abc import Awaitable, Callable
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from pergola.api.field_errors import Cause, sentence
from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]

FORBIDDEN: Final = 403
INVALID: Final = 422
INTERNAL_ERROR: Final = 500


class GroupVersionResource(NamedTuple):
    """A kind by the plural name of its API. The core group is the empty string."""

    group: str
    version: str
    resource: str


class Request(Struct, frozen=True, kw_only=True):
    """A request to an API server under review.

    Attributes:
        name: empty if a collection is deleted, or if the name is generated.
        object: the object to be stored; None for DELETE. Handlers must not change it.
        old_object: the stored object; None for CREATE.
        peer: the address of the API server that asks; empty if unknown.
    """

    uid: str
    operation: Operation
    kind: GroupVersionKind
    resource: GroupVersionResource
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    object: JsonObject | None = None
    old_object: JsonObject | None = None
    dry_run: bool = False
    peer: str = ""


class Edit(NamedTuple):
    """One operation of a JSON patch, and the rule behind it.

    Attributes:
        path: a JSON pointer.
        because: the label, annotation or setting behind the edit; for `explain`.
    """

    op: Literal["add", "remove", "replace"]
    path: str
    value: JsonValue
    because: str

    def operation(self) -> JsonObject:
        """Return the operation as in RFC 6902."""
        if self.op == "remove":
            return {"op": "remove", "path": self.path}
        return {"op": self.op, "path": self.path, "value": self.value}


class Verdict(Struct, frozen=True, kw_only=True):
    """The answer of a webhook.

    Attributes:
        code: the HTTP status that the requester sees on refusal.
        reason: a status reason, such as `Forbidden` or `Invalid`; may be empty.
        message: for the requester; allowed requests may also have one.
        because: why the object was not changed, or was refused; for `explain`, never sent.
        warnings: warnings that kubectl shows to the requester.
    """

    allowed: bool = True
    code: int = 200
    reason: str = ""
    message: str = ""
    because: str = ""
    edits: tuple[Edit, ...] = ()
    warnings: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()


Handler = Callable[[Request], Verdict | Awaitable[Verdict]]
"""Pure if possible; one that has to wait returns an awaitable."""


AtOnce = Callable[[Request], Verdict | None]
"""The method `at_once` of a handler that rarely has to wait: returns None if it must.

Each awaited review costs a task and keeps its object until the task has run.
"""


def allowed(message: str = "", *, because: str = "", warnings: tuple[str, ...] = ()) -> Verdict:
    """Allow the request unchanged."""
    return Verdict(message=message, because=because or message, warnings=warnings)


def denied(message: str) -> Verdict:
    """Refuse the request by a rule: 403 Forbidden."""
    return Verdict(allowed=False, code=FORBIDDEN, reason="Forbidden", message=message)


def errored(code: int, message: str) -> Verdict:
    """Refuse a request that could not be decided; the status has no reason."""
    return Verdict(allowed=False, code=code, message=message)


def invalid(kind: str, name: str, causes: tuple[Cause, ...]) -> Verdict:
    """Refuse an invalid object: 422, with one cause for each violated rule.

    Args:
        kind: with its group, such as `Infrastructure.extensions.gardener.cloud`.
    """
    return Verdict(
        allowed=False,
        code=INVALID,
        reason="Invalid",
        message=f'{kind} "{name}" is invalid: {sentence(causes)}',
        causes=causes,
    )
