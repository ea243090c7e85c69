"""Why a Secret exists: the ManagedResources that read it, and the token that it requests.

Answers never contain the token, or any other value.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from pergola.api.kinds import EVENT, SECRET
from pergola.api.objects import (
    Key,
    labels_of,
    map_at,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle.managed_resource import secret_names
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.controller import NAME
from pergola.resource_manager.controllers.token_requestor.decide import (
    OVERDUE,
    Due,
    due_locally,
    renewal_time,
)
from pergola.resource_manager.controllers.token_requestor.inputs import (
    MistakesError,
    Request,
    read_request,
)
from pergola.resource_manager.controllers.token_requestor.observe import (
    Holding,
    SeenSecret,
    holding_of,
    observe,
)
from pergola.why.answer import Asked, Evidence, Kind, Part, Statement, Topic
from pergola.why.reading import Reader


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return which ManagedResources read a Secret."""
    return Part(
        statements=tuple(
            Statement(
                topic=Topic.WANTED,
                subject=f"ManagedResource {Key.of(resource)}",
                text="which reads its manifests from it",
            )
            for resource in await reader.listed(MANAGED_RESOURCE, asked.key.namespace)
            if asked.key.name in secret_names(resource)
        )
    )


async def explain_token(asked: Asked, reader: Reader) -> Part:
    """Return the token requestor's decision about a Secret that requests a token."""
    if labels_of(asked.obj).get(names.PURPOSE) != names.PURPOSE_TOKEN_REQUESTOR:
        return Part()
    seen = observe(asked.obj)
    try:
        request = read_request(seen)
    except MistakesError as error:
        return Part(sentence="has an invalid token request", statements=(*_mistakes(error),))
    holder = await _holder(request, seen, reader)
    due = _due(seen, request, holder)
    return Part(
        sentence="needs a new token" if due else "has a valid token",
        statements=(*_wishes(seen, request), *await _state(seen, holder, due, reader)),
    )


def _mistakes(error: MistakesError) -> Iterator[Statement]:
    for mistake in error.mistakes:
        yield Statement(
            topic=Topic.PROBLEM,
            subject=mistake.field,
            text=mistake.problem,
            advice=f"correct {mistake.field} of the Secret",
        )


async def _holder(request: Request, seen: SeenSecret, reader: Reader) -> Holding | None:
    """Return the credentials of the Secret that must hold the token; None without one."""
    if request.target is None:
        return seen.holding
    target = await reader.find(SECRET, request.target)
    return holding_of(target) if target is not None else None


def _due(seen: SeenSecret, request: Request, holder: Holding | None) -> Due | None:
    """Return why a new token is due, by the rules that need no request; None if none is due."""
    ca = holder.ca if holder else None  # only the token requestor knows the CA to compare with
    now = datetime.now(UTC)
    if due := due_locally(seen, request, holder, ca, now):
        return due
    try:
        return OVERDUE if renewal_time(seen) <= now else None
    except MistakesError:
        return None


def _wishes(seen: SeenSecret, request: Request) -> Iterator[Statement]:
    instance = seen.resource_class or "(none)"
    where = f", into Secret {request.target}" if request.target else ""
    yield Statement(
        topic=Topic.DECIDED,
        text=f"the token requestor of class {instance} puts a token of ServiceAccount "
        f"{request.account} there{where}",
        because=f"label {names.PURPOSE} is {names.PURPOSE_TOKEN_REQUESTOR}",
    )


async def _state(
    seen: SeenSecret, holder: Holding | None, due: Due | None, reader: Reader
) -> list[Statement]:
    statements = []
    if due is not None:
        statements.append(
            Statement(
                topic=Topic.WAITS,
                text="a new token from the token requestor",
                because=due.why,
                evidence=tuple(await _events(seen, reader)),
                advice=_advice(seen),
            )
        )
    token = holder.token if holder else None
    if token is not None and token.expires is not None:
        renewal = seen.annotations.get(names.RENEW, "")
        text = f"its token expires at {token.expires:%Y-%m-%dT%H:%M:%SZ}"
        text += f" and is renewed at {renewal}" if renewal else ""
        statements.append(Statement(topic=Topic.DECIDED, text=text))
    return statements


async def _events(seen: SeenSecret, reader: Reader) -> list[Evidence]:
    """Return the token requestor's last warning about a Secret."""
    fields = f"reportingController={NAME},type=Warning"
    events = await reader.listed(EVENT, seen.key.namespace, fields=fields)
    notes = [
        (str(event.get("eventTime") or ""), str(event.get("note") or ""))
        for event in events
        if map_at(event, "regarding").get("uid") == seen.uid
    ]
    return [Evidence(Kind.EVENT, max(notes)[1])] if notes else []


def _advice(seen: SeenSecret) -> str:
    if not seen.resource_class:
        return f"set the label {names.CLASS} to the class of a token requestor"
    if names.RENEW not in seen.annotations:
        return f"check that a token requestor of class {seen.resource_class} runs"
    return ""
