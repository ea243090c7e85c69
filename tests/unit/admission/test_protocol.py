"""AdmissionReview from bytes to bytes: spec 12 §1.2."""

import asyncio
import base64
from typing import Any

import orjson
import pytest

from pergola.admission.protocol import BODY_LIMIT, Reviewer
from pergola.admission.review import (
    Edit,
    Handler,
    Request,
    Verdict,
    allowed,
    denied,
    errored,
    invalid,
)
from pergola.api.field_errors import Cause
from pergola.api.kinds import POD
from pergola.api.objects import JsonObject, JsonValue
from pergola.kube.errors import NotFound, Unreachable
from pergola.runtime.metrics import Metrics

PATH = "/webhooks/x"
JSON = "application/json"


def review(version: str = "v1", **request: Any) -> bytes:
    known: JsonObject = {
        "uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "demo",
        "name": "web",
        "operation": "CREATE",
        "userInfo": {"username": "alice", "groups": ["a", "b"]},
        "object": {"metadata": {"name": "web"}},
        "oldObject": None,
        "dryRun": True,
    }
    return orjson.dumps(
        {
            "apiVersion": f"admission.k8s.io/{version}",
            "kind": "AdmissionReview",
            "request": known | request,
        }
    )


class Served:
    """One handler, and the reviews that it received."""

    def __init__(self, handler: Handler | None = None) -> None:
        self.metrics = Metrics()
        self.asked: list[Request] = []
        self._handler = handler or (lambda _: allowed())

    def note(self, request: Request) -> Any:
        self.asked.append(request)
        return self._handler(request)

    async def answer(
        self, body: bytes, content_type: str = JSON, budget: float = 5.0
    ) -> JsonObject:
        reviewer = Reviewer(PATH, self.note, self.metrics.webhook(PATH), budget=budget)
        found = reviewer(content_type, body)
        answer: JsonObject = orjson.loads(found if isinstance(found, bytes) else await found)
        assert answer["kind"] == "AdmissionReview"
        return answer

    async def response(self, body: bytes, content_type: str = JSON) -> JsonObject:
        response: JsonObject = (await self.answer(body, content_type))["response"]
        return response

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)


async def test_all_fields_of_a_request_are_read() -> None:
    served = Served()
    await served.answer(review(subResource="status", oldObject={"a": 1}))
    (request,) = served.asked
    assert (request.uid, request.operation, request.subresource) == ("u-1", "CREATE", "status")
    assert request.kind == POD
    assert request.resource == ("", "v1", "pods")
    assert (request.namespace, request.name) == ("demo", "web")
    assert (request.user, request.groups) == ("alice", ("a", "b"))
    assert request.object == {"metadata": {"name": "web"}}
    assert request.old_object == {"a": 1}
    assert request.dry_run


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_response_has_the_version_and_uid_of_the_request(version: str) -> None:
    answer = await Served().answer(review(version))
    assert answer == {
        "apiVersion": f"admission.k8s.io/{version}",
        "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": True},
    }


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (b"", JSON, "request body is empty"),
        (review(), "text/plain", "contentType=text/plain, expected application/json"),
        (review(), "application/json; charset=utf-8", "contentType=application/json; charset"),
        (b"{", JSON, "unexpected end of data"),
        (b"[]", JSON, "expected an AdmissionReview"),
        (b'{"kind":"Pod","apiVersion":"v1"}', JSON, "expected an AdmissionReview"),
        (review("v2"), JSON, "expected an AdmissionReview of admission.k8s.io/v1 or"),
        (
            b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
            JSON,
            "the AdmissionReview has no request",
        ),
        (review(object=[1]), JSON, "object is not an object"),
        (review(operation="PATCH"), JSON, 'operation is "PATCH"'),
    ],
)
async def test_a_body_that_is_not_a_review_is_a_bad_request(
    body: bytes, content_type: str, message: str
) -> None:
    served = Served()
    response = await served.response(body, content_type)
    assert response["allowed"] is False
    assert response["status"]["code"] == 400
    assert response["status"]["message"].startswith(message)
    assert served.asked == []


async def test_an_error_has_the_uid_if_it_could_be_read() -> None:
    response = await Served().response(review(object="x"))
    assert response["uid"] == "u-1"


async def test_a_malformed_deleted_object_reaches_the_handler() -> None:
    served = Served()
    await served.response(review(operation="DELETE", oldObject="garbage", object=None))
    assert served.asked[0].old_object == {}


def test_a_body_that_is_too_large_is_refused_with_413() -> None:
    reviewer = Reviewer(PATH, lambda _: allowed(), Metrics().webhook(PATH))
    response = orjson.loads(reviewer.too_large())["response"]
    assert response["status"] == {
        "code": 413,
        "status": "Failure",
        "message": f"request entity is too large; limit is {BODY_LIMIT} bytes",
    }


async def test_a_response_has_a_patch_only_if_there_are_edits() -> None:
    edits = (Edit("add", "/metadata/labels", {"a": "b"}, "rule"), Edit("remove", "/x", None, ""))
    response = await Served(lambda _: Verdict(edits=edits)).response(review())
    assert response["patchType"] == "JSONPatch"
    assert orjson.loads(base64.b64decode(response["patch"])) == [
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
        {"op": "remove", "path": "/x"},
    ]
    unchanged = await Served(lambda _: allowed(because="a reason")).response(review())
    assert unchanged == {"uid": "u-1", "allowed": True}


@pytest.mark.parametrize(
    ("verdict", "status"),
    [
        (
            denied("no"),
            {"status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"},
        ),
        (errored(500, "broken"), {"status": "Failure", "code": 500, "message": "broken"}),
        (allowed("noted"), {"code": 200, "message": "noted"}),
        (
            invalid("Network.x", "n", (Cause("FieldValueRequired", "Required value: x", "spec"),)),
            {
                "status": "Failure",
                "code": 422,
                "reason": "Invalid",
                "message": 'Network.x "n" is invalid: spec: Required value: x',
                "details": {
                    "causes": [
                        {
                            "reason": "FieldValueRequired",
                            "message": "Required value: x",
                            "field": "spec",
                        }
                    ]
                },
            },
        ),
    ],
)
async def test_each_verdict_has_its_own_status(verdict: Verdict, status: JsonObject) -> None:
    response = await Served(lambda _: verdict).response(review())
    assert response["allowed"] is verdict.allowed
    assert response["status"] == status


async def test_warnings_are_returned_to_the_client() -> None:
    response = await Served(lambda _: allowed(warnings=("careful",))).response(review())
    assert response["warnings"] == ["careful"]


async def test_an_api_servers_refusal_keeps_its_code_and_reason() -> None:
    def refuse(_: Request) -> Verdict:
        raise NotFound(404, {"message": 'x "y" not found', "reason": "NotFound"})

    status = (await Served(refuse).response(review()))["status"]
    assert (status["code"], status["reason"]) == (404, "NotFound")
    assert status["message"] == 'x "y" not found'


async def test_an_unreachable_api_server_is_a_refusal_and_not_a_crash() -> None:
    def fail(_: Request) -> Verdict:
        raise Unreachable("no answer from https://api")

    served = Served(fail)
    status = (await served.response(review()))["status"]
    assert (status["code"], status["reason"]) == (403, "Forbidden")
    assert status["message"] == "no answer from https://api"
    assert not served.value("controller_runtime_webhook_panics_total")


async def test_a_handler_that_raises_is_counted_and_the_next_request_works() -> None:
    broken = [True]

    async def handler(_: Request) -> Verdict:
        if broken.pop():
            raise RuntimeError("oops")
        return allowed()

    served = Served(handler)
    first = await served.response(review())
    assert first["uid"] == "u-1"
    assert first["status"]["code"] == 500
    assert first["status"]["message"] == "panic: oops [recovered]"
    broken.append(False)
    assert (await served.response(review()))["allowed"]
    assert served.value("controller_runtime_webhook_panics_total") == 1


async def test_a_handler_that_takes_too_long_is_cancelled() -> None:
    async def never(_: Request) -> Verdict:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    answer = await Served(never).answer(review(), budget=0.01)
    assert answer["response"]["status"]["message"] == "no verdict within 0.01 seconds"


async def test_a_timeout_inside_a_handler_is_an_error_of_the_handler() -> None:
    async def unanswered(_: Request) -> Verdict:
        raise TimeoutError("the look-up did not answer")

    answer = await Served(unanswered).answer(review(), budget=60)
    assert "the look-up did not answer" in answer["response"]["status"]["message"]


async def test_verdicts_are_counted_by_their_outcome() -> None:
    edits = (Edit("add", "/x", 1, ""),)
    verdicts = [allowed(), Verdict(edits=edits), denied("no"), errored(500, "x"), allowed()]
    served = Served(lambda _: verdicts.pop(0))
    for _ in range(5):
        await served.response(review())
    counts = {
        name: served.value("pergola_webhook_verdicts_total", webhook=PATH, verdict=name)
        for name in ("unchanged", "mutated", "denied", "errored")
    }
    assert counts == {"unchanged": 2, "mutated": 1, "denied": 1, "errored": 1}


@pytest.mark.parametrize("depth", [300, 900])
def test_an_object_that_is_nested_too_deeply_is_refused(depth: int) -> None:
    deep = b'{"a":' * depth + b"1" + b"}" * depth

    def copies(request: Request) -> Verdict:
        assert request.object is not None
        count(request.object)
        return Verdict(edits=(Edit("add", "/b", request.object["deep"], "a copy"),))

    def count(value: JsonValue) -> int:
        return 1 + sum(map(count, value.values())) if isinstance(value, dict) else 0

    reviewer = Reviewer("/x", copies, Metrics().webhook("/x"))
    body = (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":'
        b'{"uid":"1","operation":"CREATE","object":{"deep":' + deep + b"}}}"
    )
    answer = reviewer("application/json", body)
    assert isinstance(answer, bytes)
    response = orjson.loads(answer)["response"]
    assert (response["uid"], response["allowed"]) == ("1", False)
    assert response["status"]["code"] == 400
    assert "nested too deeply" in response["status"]["message"]
