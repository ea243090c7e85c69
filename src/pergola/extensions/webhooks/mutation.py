"""The common behaviour of mutating webhooks of extensions (spec 40 §7.1).

Objects that are being deleted are not changed; an error of a mutator refuses the request; without
changes there is no patch.
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
"""Edits the object to be stored; the second argument is the stored one, None on creation.

It must not change its own output, and must keep user settings unless they cannot work. An error
refuses the request; raise `ExtensionError` to refuse one intentionally.
"""


def mutating(choose: Callable[[Request, JsonObject], Iterable[Mutate]]) -> Handler:
    """Return the handler that applies the mutators chosen for a request and its object."""

    def handle(request: Request) -> Verdict:
        obj = request.object
        if obj is None:
            return errored(HTTPStatus.BAD_REQUEST, "the review has no object")
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
    """Return the mutator for a function that maps an object to the desired one.

    Args:
        change: must not modify its argument.
        because: the rule, for `explain`.
    """

    def mutate(draft: Draft, _: JsonObject | None) -> None:
        _edit(draft, (), draft.object, change(draft.object), because)

    return mutate


def _edit(draft: Draft, path: Path, old: JsonValue, new: JsonValue, because: str) -> None:
    """Edit the parts that differ; lists as a whole."""
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
