"""SubjectAccessReview, v1 and v1beta1, from bytes to bytes.

The HTTP status is always 200. Errors are reported as `evaluationError`, which allows nothing.
"""

import asyncio
from typing import Final

import orjson

from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks.decoding import (
    Undecodable,
    map_in,
    maps_in,
    text_in,
    texts_in,
)
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
_CONTENT_TYPE: Final = "application/json"
_KIND: Final = "SubjectAccessReview"
_VERSIONS: Final = ("authorization.k8s.io/v1", "authorization.k8s.io/v1beta1")
_RESOURCE: Final = ("spec", "resourceAttributes")


class _Unanswerable(Exception):
    """The body is not a review that can be decided.

    Attributes:
        version: of the review, if known.
    """

    def __init__(self, code: int, text: str, version: str = _VERSIONS[0]) -> None:
        self.version = version
        super().__init__(f"{code} {text}")


class NodeAgentAuthorizer:
    """The endpoint.

    Args:
        by_selectors: allow listing pods only with a field selector for the agent's own node.
    """

    def __init__(self, lookups: Lookups, *, by_selectors: bool = False) -> None:
        self._lookups = lookups
        self._by_selectors = by_selectors

    def too_large(self, limit: str) -> bytes:
        """Answer a request that exceeds a limit, without decoding it."""
        return _failed(_VERSIONS[0], f"413 request entity is too large; limit is {limit}")

    async def __call__(self, content_type: str, body: bytes, peer: str = "") -> bytes:
        """Answer one review. Any error denies the request."""
        try:
            version, attributes = read_review(content_type, body)
        except _Unanswerable as error:
            return _failed(error.version, str(error))
        try:
            async with asyncio.timeout(BUDGET_SECONDS) as budget:
                decision = await decide(attributes, self._lookups, by_selectors=self._by_selectors)
        except Exception as error:
            if budget.expired():
                return _failed(version, f"500 no decision within {BUDGET_SECONDS:g} seconds")
            log.error("review failed", error=str(error))
            return _failed(version, f"500 {str(error) or type(error).__name__}")
        return _answer(version, _status(decision))


def read_review(content_type: str, body: bytes) -> tuple[str, Attributes]:
    """Return the version of a review, and the request to authorize."""
    if not body:
        raise _Unanswerable(422, "request body is empty")
    if content_type != _CONTENT_TYPE:
        raise _Unanswerable(400, f"contentType={content_type}, expected {_CONTENT_TYPE}")
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _Unanswerable(400, str(error)) from None
    version = review.get("apiVersion") if isinstance(review, dict) else None
    if version not in _VERSIONS or review.get("kind") != _KIND:
        raise _Unanswerable(400, f"expected a {_KIND} of {' or '.join(_VERSIONS)}")
    try:
        return version, _attributes(review)
    except Undecodable as error:
        raise _Unanswerable(400, str(error), version) from None


def _attributes(review: JsonObject) -> Attributes:
    spec = map_in(review, "spec")
    map_in(review, *_RESOURCE)
    # v1beta1 names this field `group`.
    groups = texts_in(review, "spec", "groups") or texts_in(review, "spec", "group")
    return Attributes(
        user=text_in(review, "spec", "user"),
        groups=tuple(groups),
        is_resource=spec.get("resourceAttributes") is not None,
        verb=text_in(review, *_RESOURCE, "verb"),
        group=text_in(review, *_RESOURCE, "group"),
        resource=text_in(review, *_RESOURCE, "resource"),
        subresource=text_in(review, *_RESOURCE, "subresource"),
        namespace=text_in(review, *_RESOURCE, "namespace"),
        name=text_in(review, *_RESOURCE, "name"),
        fields=_selections(review),
    )


def _selections(review: JsonObject) -> tuple[Selection, ...]:
    path = (*_RESOURCE, "fieldSelector", "requirements")
    return tuple(
        Selection(
            text_in(review, *path, index, "key"),
            text_in(review, *path, index, "operator"),
            tuple(texts_in(review, *path, index, "values")),
        )
        for index, _ in enumerate(maps_in(review, *path))
    )


def _status(decision: Decision) -> JsonObject:
    if decision.answer == "allow":
        return {"allowed": True}
    if decision.answer == "deny":
        return {"allowed": False, "denied": True, "reason": decision.reason}
    return {"allowed": False}


def _failed(version: str, text: str) -> bytes:
    return _answer(version, {"allowed": False, "evaluationError": text})


def _answer(version: str, status: JsonObject) -> bytes:
    return orjson.dumps({"apiVersion": version, "kind": _KIND, "status": status})
