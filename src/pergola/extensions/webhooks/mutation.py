"""How all mutating webhooks of extensions behave, whatever they change (spec 40 §7.1).

An object that is being deleted is left alone; what a mutator raises is the answer; nothing to
change is no patch.
"""

from collections.abc import Callable, Iterable
from http import HTTPStatus

from pergola.admission.draft import Draft, Path
from pergola.admission.review import Handler, Request, Verdict, allowed, denied, errored
from pergola.api.objects import JsonObject, JsonValue, deletion_timestamp_of
from pergola.extension_api.errors import ExtensionError
from pergola.kube.patches import same
from pergola.runtime.logging import get_logger

log = get_logger("extension-webhooks")

Mutate = Callable[[Draft, JsonObject | None], None]
"""Edits an object as it would be stored; the second is the stored one, None while it is created.

It must have nothing to say to its own output, and keep what a user set unless that cannot work.
What it raises refuses the request; an `ExtensionError` is the way to refuse one on purpose.
"""


def mutating(choose: Callable[[Request, JsonObject], Iterable[Mutate]]) -> Handler:
    """The handler that applies what `choose` finds for a request and its object."""

    def handle(request: Request) -> Verdict:
        obj = request.object
        if obj is None:
            return errored(HTTPStatus.BAD_REQUEST, "the review has no object to be changed")
        if deletion_timestamp_of(obj) is not None:
            return allowed(because="the object is being deleted")
        draft = Draft(obj)
        for mutate in choose(request, obj):
            try:
                mutate(draft, request.old_object)
            except Exception as error:
                return _refused(error)
        return draft.verdict("nothing to change")

    return handle


def from_objects(change: Callable[[JsonObject], JsonObject], because: str) -> Mutate:
    """A mutator of a function from an object to what it should be.

    Args:
        change: leaves its argument as it is.
        because: the rule, for `explain`.
    """

    def mutate(draft: Draft, _: JsonObject | None) -> None:
        _edit(draft, (), draft.object, change(draft.object), because)

    return mutate


def _edit(draft: Draft, path: Path, old: JsonValue, new: JsonValue, because: str) -> None:
    """Edits what differs; lists as a whole."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        draft.set(path, new, because)
        return
    for name in [name for name in old if name not in new]:
        draft.remove((*path, name), because)
    for name, value in new.items():
        if name not in old:
            draft.set((*path, name), value, because)
        elif not same(old[name], value):
            _edit(draft, (*path, name), old[name], value, because)


def _refused(error: Exception) -> Verdict:
    if not isinstance(error, ExtensionError):
        log.error("mutator failed", exc_info=error)
    return denied(str(error) or type(error).__name__)
