"""AdmissionReview, v1 and v1beta1, from bytes to bytes (spec 12 §1.2).

The HTTP status is always 200, and the answer is an AdmissionReview with the request's uid: errors
are in its response. This module does not handle sockets.
"""

import asyncio
import base64
import logging
import time
from collections.abc import Awaitable
from http import HTTPStatus
from typing import Final, NamedTuple

import orjson

from pergola.admission.review import (
    AtOnce,
    GroupVersionResource,
    Handler,
    Request,
    Verdict,
    denied,
    errored,
)
from pergola.api.field_errors import Cause
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.kube.errors import ApiError, KubeError
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import WebhookMetrics

log = get_logger("admission")

BODY_LIMIT: Final = 7 * 1024 * 1024
CONTENT_TYPE: Final = "application/json"
BUDGET_SECONDS: Final = 9.5
_KIND: Final = "AdmissionReview"
_V1: Final = "admission.k8s.io/v1"
_VERSIONS: Final = (_V1, "admission.k8s.io/v1beta1")
_TOO_DEEP: Final = "the object is nested too deeply"
_OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")


class MalformedReview(Exception):
    """The body is not a valid AdmissionReview; the text is for the requester.

    Attributes:
        uid: of the request; empty if it could not be read.
        version: of the review.
    """

    def __init__(self, text: str, *, uid: str = "", version: str = _V1) -> None:
        self.uid = uid
        self.version = version
        super().__init__(text)


class Asked(NamedTuple):
    """A request, and the version of the review that contained it."""

    version: str
    request: Request


class Reviewer:
    """The endpoint of one path.

    Args:
        path: for metrics and logs.
        budget: the seconds after which a handler that still waits is cancelled.
    """

    def __init__(
        self,
        path: str,
        handler: Handler,
        metrics: WebhookMetrics,
        *,
        budget: float = BUDGET_SECONDS,
    ) -> None:
        self._path = path
        self._handler = handler
        self._at_once: AtOnce = getattr(handler, "at_once", _later)
        self._metrics = metrics
        self._budget = budget

    def __call__(self, content_type: str, body: bytes, peer: str = "") -> bytes | Awaitable[bytes]:
        """Answer a review; directly unless the handler has to wait."""
        began = time.perf_counter()
        try:
            asked = read_review(content_type, body, peer)
        except MalformedReview as error:
            verdict = errored(HTTPStatus.BAD_REQUEST, str(error))
            return self._answered(error.version, error.uid, verdict, began)
        try:
            outcome = self._at_once(asked.request) or self._handler(asked.request)
        except Exception as error:  # a bug in a handler must not stop the server
            outcome = self._failed(error)
        if isinstance(outcome, Verdict):
            return self._answered(asked.version, asked.request.uid, outcome, began)
        return self._awaited(asked, outcome, began)

    def too_large(self, limit: str = f"{BODY_LIMIT} bytes") -> bytes:
        """Answer a request that exceeds a limit, without decoding it."""
        text = f"request entity is too large; limit is {limit}"
        verdict = errored(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)
        return self._answered(_V1, "", verdict, time.perf_counter())

    async def _awaited(self, asked: Asked, waiting: Awaitable[Verdict], began: float) -> bytes:
        self._metrics.in_flight.inc()
        limit = asyncio.timeout(self._budget)
        try:
            async with limit:
                verdict = await waiting
        except Exception as error:
            verdict = self._overdue() if limit.expired() else self._failed(error)
        finally:
            self._metrics.in_flight.dec()
        return self._answered(asked.version, asked.request.uid, verdict, began)

    def _overdue(self) -> Verdict:
        text = f"no verdict within {self._budget:g} seconds"
        return errored(HTTPStatus.INTERNAL_SERVER_ERROR, text)

    def _failed(self, error: Exception) -> Verdict:
        """Return the answer for an error: a refusal by the API server keeps its code and reason."""
        if isinstance(error, ApiError):
            return Verdict(allowed=False, code=error.code, reason=error.reason, message=str(error))
        if isinstance(error, KubeError):
            return denied(str(error))
        if isinstance(error, RecursionError):
            return errored(HTTPStatus.BAD_REQUEST, _TOO_DEEP)
        self._metrics.panicked()
        log.error("handler failed", webhook=self._path, exc_info=error)
        return errored(HTTPStatus.INTERNAL_SERVER_ERROR, f"panic: {error} [recovered]")

    def _answered(self, version: str, uid: str, verdict: Verdict, began: float) -> bytes:
        try:
            answer = render_review(version, uid, verdict)
        except orjson.JSONEncodeError:  # the parser accepts deeper values than the serializer
            verdict = errored(HTTPStatus.BAD_REQUEST, _TOO_DEEP)
            answer = render_review(version, uid, verdict)
        self._metrics.observe(HTTPStatus.OK, time.perf_counter() - began)
        self._metrics.judged(_outcome(verdict))
        if log.is_enabled_for(logging.DEBUG):
            log.debug(
                "reviewed",
                webhook=self._path,
                uid=uid,
                allowed=verdict.allowed,
                changed=[edit.path for edit in verdict.edits],
            )
        return answer


def _later(request: Request) -> Verdict | None:
    """Return None: the decision has to wait."""
    del request
    return None


def read_review(content_type: str, body: bytes, peer: str = "") -> Asked:
    """Return the request in a body.

    Args:
        peer: the address that sent it.

    Raises:
        MalformedReview: the body does not contain a valid request.
    """
    if not body:
        raise MalformedReview("request body is empty")
    if content_type != CONTENT_TYPE:
        raise MalformedReview(f"contentType={content_type}, expected {CONTENT_TYPE}")
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedReview(str(error)) from None
    if not isinstance(review, dict) or review.get("kind") != _KIND:
        raise MalformedReview(f"expected an {_KIND}")
    version = review.get("apiVersion")
    if version not in _VERSIONS:
        raise MalformedReview(f"expected an {_KIND} of {' or '.join(_VERSIONS)}")
    request = review.get("request")
    if not isinstance(request, dict):
        raise MalformedReview(f"the {_KIND} has no request", version=version)
    uid = _text(request, "uid")
    try:
        return Asked(version, _request(uid, request, peer))
    except MalformedReview as error:
        raise MalformedReview(str(error), uid=uid, version=version) from None


def render_review(version: str, uid: str, verdict: Verdict) -> bytes:
    """Return the answer in the version of the review."""
    response: JsonObject = {"uid": uid, "allowed": verdict.allowed}
    if verdict.edits:
        operations = [edit.operation() for edit in verdict.edits]
        response["patch"] = base64.b64encode(orjson.dumps(operations)).decode()
        response["patchType"] = "JSONPatch"
    if not verdict.allowed or verdict.message:
        response["status"] = _status(verdict)
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return orjson.dumps({"apiVersion": version, "kind": _KIND, "response": response})


def _request(uid: str, request: JsonObject, peer: str) -> Request:
    operation = request.get("operation")
    if operation not in _OPERATIONS:
        raise MalformedReview(f'operation is "{operation}", expected {", ".join(_OPERATIONS)}')
    kind, resource = _map(request, "kind"), _map(request, "resource")
    user = _map(request, "userInfo")
    groups = user.get("groups")
    return Request(
        uid=uid,
        operation=operation,
        kind=GroupVersionKind(_text(kind, "group"), _text(kind, "version"), _text(kind, "kind")),
        resource=GroupVersionResource(
            _text(resource, "group"), _text(resource, "version"), _text(resource, "resource")
        ),
        subresource=_text(request, "subResource"),
        namespace=_text(request, "namespace"),
        name=_text(request, "name"),
        user=_text(user, "username"),
        groups=tuple(groups) if isinstance(groups, list) else (),
        object=_object(request, "object", operation),
        old_object=_object(request, "oldObject", operation),
        dry_run=request.get("dryRun") is True,
        peer=peer,
    )


def _object(request: JsonObject, name: str, operation: str) -> JsonObject | None:
    obj = request.get(name)
    if obj is None or isinstance(obj, dict):
        return obj
    if operation == "DELETE":
        return {}  # handlers that need it refuse; others must not be affected
    raise MalformedReview(f"{name} is not an object")


def _status(verdict: Verdict) -> JsonObject:
    status: JsonObject = {"code": verdict.code}
    if not verdict.allowed:
        status["status"] = "Failure"
    if verdict.message:
        status["message"] = verdict.message
    if verdict.reason:
        status["reason"] = verdict.reason
    if verdict.causes:
        status["details"] = {"causes": [_cause(cause) for cause in verdict.causes]}
    return status


def _cause(cause: Cause) -> JsonObject:
    return {"reason": cause.reason, "message": cause.message, "field": cause.field}


def _outcome(verdict: Verdict) -> str:
    if verdict.allowed:
        return "mutated" if verdict.edits else "unchanged"
    return "denied" if verdict.reason else "errored"


def _map(value: JsonObject, name: str) -> JsonObject:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: JsonObject, name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""
