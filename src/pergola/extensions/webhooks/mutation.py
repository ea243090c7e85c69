"""The common behaviour of mutating webhooks of extensions (spec 40 §7.1).

Objects that are being deleted are not changed; an error of a mutator refuses the request; without
changes there is no patch.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Final

from pergola.admission.draft import Draft, Path
from pergola.admission.review import Handler, Request, Verdict, allowed, denied, errored
from pergola.api.objects import JsonObject, JsonValue, deletion_timestamp_of
from pergola.extension_api.errors import ExtensionError
from pergola.kube.errors import KubeError
from pergola.kube.patches import same
from pergola.runtime.logging import get_logger

log = get_logger("extension-webhooks")

_STORING: Final = ("CREATE", "UPDATE")

Mutate = Callable[[Draft, JsonObject | None], Awaitable[None] | None]
"""Edits the object to be stored; the second argument is the stored one, None on creation.

It returns an awaitable if it has to read something first.

It must not change its own output, and must keep user settings unless they cannot work. An error
refuses the request; raise `ExtensionError` to refuse one intentionally.
"""


class LeftAlone(ExtensionError):
    """Raised by a mutator to allow the request unchanged; the text becomes a warning."""


def mutating(choose: Callable[[Request, JsonObject], Iterable[Mutate]]) -> Handler:
    """Return the handler that applies the mutators chosen for a request and its object."""

    def handle(request: Request) -> Verdict | Awaitable[Verdict]:
        obj = request.object
        if obj is None:
            return errored(HTTPStatus.BAD_REQUEST, "the review has no object")
        if request.operation not in _STORING:
            return allowed(because="the request stores no object")
        if deletion_timestamp_of(obj) is not None:
            return allowed(because="the object is being deleted")
        draft = Draft(obj)
        return _mutated(draft, iter(choose(request, obj)), request.old_object)

    return handle


def _mutated(
    draft: Draft, left: Iterator[Mutate], old: JsonObject | None
) -> Verdict | Awaitable[Verdict]:
    """Apply mutators until one has to wait."""
    for mutate in left:
        try:
            waiting = mutate(draft, old)
        except Exception as error:
            return _refused(error)
        if waiting is not None:
            return _awaited(waiting, draft, left, old)
    return draft.verdict("nothing to change")


async def _awaited(
    waiting: Awaitable[None], draft: Draft, left: Iterator[Mutate], old: JsonObject | None
) -> Verdict:
    """Wait for a mutator, and apply the others."""
    try:
        await waiting
    except KubeError:
        raise  # the answer of the API server is passed on
    except Exception as error:
        return _refused(error)
    verdict = _mutated(draft, left, old)
    return verdict if isinstance(verdict, Verdict) else await verdict


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
    if isinstance(error, LeftAlone):
        return allowed(because=str(error), warnings=(str(error),))
    if not isinstance(error, ExtensionError):
        log.error("mutator failed", exc_info=error)
    return denied(str(error) or type(error).__name__)
