"""SubjectAccessReview, v1 and v1beta1, from bytes to bytes.

The HTTP status is 200 always: what goes wrong is an `evaluationError`, which allows nothing.
"""

import asyncio
from typing import Final

import orjson

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.resource_manager.webhooks.node_agent_authorizer.decide import (
    Attributes,
    Decision,
    Lookups,
    Selection,
    decide,
)
from pergola.runtime.logging import get_logger

log = get_logger("node-agent-authorizer")

PATH: Final = "/webhooks/auth/nodeagent"
BUDGET_SECONDS: Final = 10.0
_KIND: Final = "SubjectAccessReview"
_VERSIONS: Final = ("authorization.k8s.io/v1", "authorization.k8s.io/v1beta1")


class NodeAgentAuthorizer:
    """Answers reviews.

    Args:
        by_selectors: whether pods may be listed only with a selector for the agent's own node.
    """

    def __init__(self, lookups: Lookups, *, by_selectors: bool = False) -> None:
        self._lookups = lookups
        self._by_selectors = by_selectors

    def too_large(self) -> bytes:
        """The answer to a body that is not even read."""
        return _failed(_VERSIONS[0], 413, "request entity is too large")

    async def __call__(self, content_type: str, body: bytes) -> bytes:
        """The answer to one review; never an allowance if anything goes wrong."""
        if not body:
            return _failed(_VERSIONS[0], 422, "request body is empty")
        if content_type != "application/json":
            text = f"contentType={content_type}, expected application/json"
            return _failed(_VERSIONS[0], 400, text)
        try:
            review = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            return _failed(_VERSIONS[0], 400, str(error))
        version = review.get("apiVersion") if isinstance(review, dict) else None
        if version not in _VERSIONS or review.get("kind") != _KIND:
            return _failed(_VERSIONS[0], 400, f"expected a {_KIND} of {' or '.join(_VERSIONS)}")
        limit = asyncio.timeout(BUDGET_SECONDS)
        try:
            async with limit:
                decision = await decide(
                    read_attributes(review), self._lookups, by_selectors=self._by_selectors
                )
        except Exception as error:  # whatever happened, nothing is allowed by it
            if limit.expired():
                return _failed(version, 500, f"no decision within {BUDGET_SECONDS:g} seconds")
            log.error("review failed", error=str(error))
            return _failed(version, 500, str(error) or type(error).__name__)
        return _answer(version, _status(decision))


def read_attributes(review: JsonObject) -> Attributes:
    """What a review asks; what is missing or of another type is empty."""
    spec = map_at(review, "spec")
    resource = map_at(spec, "resourceAttributes")
    # v1beta1 has a key of its own for the groups.
    groups = spec.get("groups") or spec.get("group")
    return Attributes(
        user=_text(spec, "user"),
        groups=tuple(map(str, groups)) if isinstance(groups, list) else (),
        is_resource=isinstance(spec.get("resourceAttributes"), dict),
        verb=_text(resource, "verb"),
        group=_text(resource, "group"),
        resource=_text(resource, "resource"),
        subresource=_text(resource, "subresource"),
        namespace=_text(resource, "namespace"),
        name=_text(resource, "name"),
        fields=tuple(_selections(resource)),
    )


def _selections(resource: JsonObject) -> list[Selection]:
    found = []
    for requirement in maps_at(resource, "fieldSelector", "requirements"):
        values = requirement.get("values")
        found.append(
            Selection(
                _text(requirement, "key"),
                _text(requirement, "operator"),
                tuple(map(str, values)) if isinstance(values, list) else (),
            )
        )
    return found


def _text(part: JsonObject, name: str) -> str:
    value = part.get(name)
    return value if isinstance(value, str) else ""


def _status(decision: Decision) -> JsonObject:
    if decision.answer == "allow":
        return {"allowed": True}
    if decision.answer == "deny":
        return {"allowed": False, "denied": True, "reason": decision.reason}
    return {"allowed": False}


def _failed(version: str, code: int, text: str) -> bytes:
    return _answer(version, {"allowed": False, "evaluationError": f"{code} {text}"})


def _answer(version: str, status: JsonObject) -> bytes:
    return orjson.dumps({"apiVersion": version, "kind": _KIND, "status": status})
