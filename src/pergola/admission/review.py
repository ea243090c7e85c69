"""What an API server asks of a webhook, and what it may be answered (spec 12 §1.2)."""

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
    """Under which plural name a kind is served. The core group is the empty string."""

    group: str
    version: str
    resource: str


class Request(Struct, frozen=True, kw_only=True):
    """One request that an API server received from somebody, to be reviewed.

    Attributes:
        name: empty when a collection is deleted, and for objects whose name is generated.
        object: as it would be stored; None for DELETE. A handler may not change it.
        old_object: as it is stored; None for CREATE.
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


class Edit(NamedTuple):
    """One operation of a JSON patch, and the rule that asked for it.

    Attributes:
        path: a JSON pointer.
        because: the row of a table, the label or the annotation that decided; for `explain`.
    """

    op: Literal["add", "remove", "replace"]
    path: str
    value: JsonValue
    because: str

    def operation(self) -> JsonObject:
        """The operation as RFC 6902 writes it."""
        if self.op == "remove":
            return {"op": "remove", "path": self.path}
        return {"op": self.op, "path": self.path, "value": self.value}


class Verdict(Struct, frozen=True, kw_only=True):
    """What a webhook answers.

    Attributes:
        code: the HTTP status that the requester sees if the request is refused.
        reason: a status reason, such as `Forbidden` or `Invalid`; may be empty.
        message: for the requester, also with an allowed request.
        because: why the object was left alone or let through; for `explain`, never sent.
        warnings: shown to the requester by kubectl.
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
"""Pure where it can be; one that has to ask somebody else returns an awaitable."""


def allowed(message: str = "", *, because: str = "", warnings: tuple[str, ...] = ()) -> Verdict:
    """The request may pass, as it is."""
    return Verdict(message=message, because=because or message, warnings=warnings)


def denied(message: str) -> Verdict:
    """The request is refused by a rule: 403 Forbidden."""
    return Verdict(allowed=False, code=FORBIDDEN, reason="Forbidden", message=message)


def errored(code: int, message: str) -> Verdict:
    """The request could not be judged, and is refused therefore; the status has no reason."""
    return Verdict(allowed=False, code=code, message=message)


def invalid(kind: str, name: str, causes: tuple[Cause, ...]) -> Verdict:
    """The object breaks rules: 422, with one cause each.

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
