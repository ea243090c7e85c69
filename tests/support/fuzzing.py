"""Fuzzing of webhooks: reviews that an API server could send, with parts replaced by other JSON.

```python
SERVED = Fuzzed.of(webhooks, Metrics())

@given(data=st.data())
def test_a_webhook_responds_to_every_request(data):
    SERVED.check(data, path, [Sample("", "pods", pod)])
```
"""

import asyncio
import base64
import copy
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

import jsonpatch
import orjson
from hypothesis import settings
from hypothesis import strategies as st

from pergola.admission.protocol import Reviewer
from pergola.admission.webhook import Webhook, handlers
from pergola.api.objects import JsonObject, JsonValue
from pergola.runtime.metrics import Metrics

_PANICS: Final = "controller_runtime_webhook_panics_total"
_DEEP: Final[JsonValue] = orjson.loads(b'{"a":' * 200 + b"1" + b"}" * 200)
_JUNK: Final = st.one_of(
    st.sampled_from(
        [
            None,
            True,
            0,
            -1,
            2**53,
            -(2**63),
            1e300,
            0.5,
            "",
            "a",
            "..",
            "%",
            "a/b~0~1",
            "\x00\n",
            "é" * 300,
            [],
            [None],
            ["a", 1],
            [[]],
            {},
            {"": None},
            {"a": {"b": []}},
            _DEEP,
        ]
    ),
    st.text(max_size=5),
    st.integers(-3, 3),
)
_MANY: Final = 1000
_FEW: Final = 25


class Sample(NamedTuple):
    """A valid object of a resource, to be mangled."""

    group: str
    plural: str
    obj: JsonObject


def examples() -> int:
    """Return how many examples to try of each webhook: few, except in the soak."""
    chosen = settings().max_examples
    return chosen if chosen >= _MANY else _FEW


@st.composite
def nearly(draw: st.DrawFn, sample: JsonObject) -> JsonObject:
    """Return the sample with up to four of its parts replaced, removed or added."""
    value = copy.deepcopy(sample)
    for _ in range(draw(st.integers(0, 4))):
        _mangle(draw, value)
    return value


class Fuzzed:
    """Webhooks that are called as a server calls them, without a server.

    Attributes:
        served: The endpoint of each path.
    """

    def __init__(self, served: Mapping[str, Reviewer], metrics: Metrics) -> None:
        self.served = served
        self._metrics = metrics

    @classmethod
    def of(cls, webhooks: Iterable[Webhook], metrics: Metrics) -> Self:
        """Serve these webhooks."""
        served = {
            path: Reviewer(path, handler, metrics.webhook(path))
            for path, handler in handlers(webhooks).items()
        }
        return cls(served, metrics)

    def check(self, data: st.DataObject, path: str, samples: Sequence[Sample]) -> None:
        """Send one mangled review, and check that the answer is valid and no bug was hit."""
        sent = _request(data, samples)
        review: JsonObject = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        before = self._metrics.registry.get_sample_value(_PANICS)
        body = orjson.dumps(review | {"request": sent})
        answer = called(self.served[path]("application/json", body))
        assert self._metrics.registry.get_sample_value(_PANICS) == before, answer
        _check(answer, sent)


def called(answer: bytes | Awaitable[bytes]) -> JsonObject:
    """Return the JSON of an answer, awaiting it if needed."""

    async def wait(awaitable: Awaitable[bytes]) -> bytes:
        return await awaitable

    body = answer if isinstance(answer, bytes) else asyncio.run(wait(answer))
    value: JsonObject = orjson.loads(body)
    return value


def _request(data: st.DataObject, samples: Sequence[Sample]) -> JsonObject:
    group, plural, sample = data.draw(st.sampled_from(samples))
    operation = data.draw(st.sampled_from(["CREATE", "CREATE", "UPDATE", "DELETE", "CONNECT"]))
    obj, old = (data.draw(st.none() | nearly(sample)) for _ in range(2))
    version = str(sample["apiVersion"]).rpartition("/")[2]
    request: JsonObject = {
        "uid": "1",
        "operation": operation,
        "kind": {"group": group, "version": version, "kind": sample["kind"]},
        "resource": {"group": group, "version": version, "resource": plural},
        "namespace": "n",
        "name": data.draw(st.sampled_from(["x", ""])),
        "userInfo": {"username": "alice", "groups": ["a"]},
        "object": obj,
        "oldObject": old,
    }
    return data.draw(st.just(request) | nearly(request))


def _mangle(draw: st.DrawFn, root: JsonObject) -> None:
    node: Any = root
    while True:
        steps: list[Any] = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not steps:
            return
        step = draw(st.sampled_from(steps))
        if isinstance(node[step], dict | list) and draw(st.integers(0, 3)):
            node = node[step]
            continue
        _change(draw, node, step)
        return


def _change(draw: st.DrawFn, node: Any, step: Any) -> None:
    match draw(st.sampled_from(["replace", "replace", "remove", "add"])):
        case "replace":
            node[step] = copy.deepcopy(draw(_JUNK))
        case "remove":
            del node[step]
        case _ if isinstance(node, dict):
            node[draw(st.sampled_from(["", "a", "name", "x-new"]))] = copy.deepcopy(draw(_JUNK))
        case _:
            node.append(copy.deepcopy(draw(_JUNK)))


def _check(answer: JsonObject, request: JsonObject) -> None:
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = answer["response"]
    uid = request.get("uid")
    assert response["uid"] == (uid if isinstance(uid, str) else "")
    if not response["allowed"]:
        assert 400 <= response["status"]["code"] <= 500
        assert response["status"]["message"]
        assert "patch" not in response
    elif "patch" in response:
        assert response["patchType"] == "JSONPatch"
        patch = orjson.loads(base64.b64decode(response["patch"]))
        assert jsonpatch.apply_patch(request["object"], patch) != request["object"]
