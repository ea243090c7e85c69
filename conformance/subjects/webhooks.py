"""The base of subjects about the resource manager's webhooks.

Both sides get the same configuration file, the same objects in their clusters, and the same
AdmissionReview. The patched objects, or the refusals, are compared.
"""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import jsonpatch
import orjson
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences, refusals
from conformance.documents import client_of
from conformance.oracles import GARDENER, Answer, OracleModule
from pergola.admission.protocol import Reviewer
from pergola.admission.webhook import handlers
from pergola.api.objects import JsonObject, JsonValue, maps_at
from pergola.api.resource_manager_config import (
    ResourceManagerConfiguration,
    configuration_from,
)
from pergola.resource_manager.webhooks.catalog import webhooks
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.facts.lookups import ClusterLookups
from pergola.resource_manager.webhooks.installation import Installation
from pergola.runtime.metrics import Metrics

VERSION: Final = (1, 34)
"""The version of the cluster, which selects rules on our side."""
JSON: Final = "application/json"
_METRICS: Final = Metrics()


class WebhookSubject:
    """One or more webhooks of the resource manager.

    Args:
        questions: a strategy for `asked`.
        always: the questions that are always asked.
        normalise: brings the patched object to a form in which order does not matter.
    """

    ask = "webhook"
    of: OracleModule = GARDENER

    def __init__(
        self,
        name: str,
        title: str,
        code: tuple[str, ...],
        questions: SearchStrategy[JsonObject],
        normalise: Callable[[JsonObject], JsonObject] = lambda obj: obj,
        *,
        always: Callable[[], Iterable[JsonObject]] = tuple,
    ) -> None:
        self.name = name
        self.title = title
        self.code = code
        self._questions = questions
        self._normalise = normalise
        self._always = always

    def table(self) -> Iterator[JsonObject]:
        """Yield the questions that are always asked."""
        yield from self._always()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return reviews."""
        return self._questions

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the patched object, or the refused fields."""
        review = answer.output["answer"]
        if refused := _refusals(review):
            return {"refused": {path: True for path, _ in refused}}
        return {"object": self._patched(answer.output["given"].get("object"), review)}

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Post the same review to Pergola's endpoint."""
        review, given = question["review"], answer.output["given"]
        review = {**review, "request": {**review["request"], **given}}
        ours = asyncio.run(_posted(question, orjson.dumps(review)))
        theirs = answer.output["answer"]
        if _refusals(theirs) or _refusals(ours):
            return refusals(_refusals(theirs), _refusals(ours))
        obj = given.get("object")
        return differences(self._patched(obj, theirs), self._patched(obj, ours))

    def _patched(self, obj: JsonObject | None, review: JsonObject) -> JsonValue:
        patch = review["response"].get("patch")
        if obj is None:
            return None
        if patch is not None:
            obj = jsonpatch.apply_patch(obj, orjson.loads(base64.b64decode(patch)))
        return self._normalise(obj)


def _refusals(review: JsonObject) -> list[tuple[str, str]]:
    """Return the field and text of each cause of a refusal; empty if the request is allowed."""
    response = review["response"]
    if response["allowed"]:
        return []
    status = response.get("status", {})
    causes = [
        (str(cause.get("field", "")), str(cause.get("message", "")))
        for cause in maps_at(status, "details", "causes")
    ]
    return causes or [("", str(status.get("message", "")))]


async def _posted(question: JsonObject, body: bytes) -> JsonObject:
    settings = _read(orjson.dumps(question["configuration"]))
    client = client_of(question["target"])
    nodes = settings.webhooks.system_components_config.node_selector
    lookups = ClusterLookups(client, system_nodes=nodes)
    place = Installation("target")
    served = handlers(webhooks(settings.webhooks, Dependencies(place, lookups, version=VERSION)))
    path = question["path"]
    endpoint = Reviewer(path, served[path], _METRICS.webhook(path))
    answer: bytes | Awaitable[bytes] = endpoint(JSON, body)
    loaded: JsonObject = orjson.loads(answer if isinstance(answer, bytes) else await answer)
    return loaded


@lru_cache
def _read(text: bytes) -> ResourceManagerConfiguration:
    configuration, _ = configuration_from(orjson.loads(text))
    return configuration


def asked(
    webhook: tuple[str, str],
    settings: JsonObject,
    target: Sequence[JsonObject],
    request: JsonObject,
    source: Sequence[JsonObject] = (),
) -> JsonObject:
    """Return a question.

    Args:
        webhook: the path at which the server answers, and the key in the configuration file.
        settings: of the webhook.
        target: the objects of the target cluster.
        source: the objects of the source cluster.
    """
    path, key = webhook
    return {
        "path": path,
        "configuration": configuration(key, settings),
        "source": [*source],
        "target": [*target],
        "review": {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": request,
        },
    }


def configuration(key: str, settings: JsonObject) -> JsonObject:
    """Return a configuration file that enables one webhook."""
    return {
        "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
        "kind": "ResourceManagerConfiguration",
        "leaderElection": {"leaderElect": False},
        "webhooks": {key: {"enabled": True, **settings}},
    }


def request(
    kind: tuple[str, str, str],
    plural: str,
    obj: SearchStrategy[JsonObject],
    operations: Sequence[str] = ("CREATE",),
) -> SearchStrategy[JsonObject]:
    """Return requests for objects of a kind.

    Args:
        kind: group, version and kind.
        plural: the name of the resource.
    """
    group, version, name = kind

    def of(parts: tuple[JsonObject, str]) -> JsonObject:
        body, operation = parts
        api = f"{group}/{version}" if group else version
        metadata = body["metadata"]
        fields: dict[str, Any] = {
            "uid": "1",
            "kind": {"group": group, "version": version, "kind": name},
            "resource": {"group": group, "version": version, "resource": plural},
            "operation": operation,
            "userInfo": {},
            "object": {"apiVersion": api, "kind": name, **body},
        }
        for key in ("name", "namespace"):
            if key in metadata:
                fields[key] = metadata[key]
        if operation == "UPDATE":
            fields["oldObject"] = fields["object"]
        return fields

    return st.tuples(obj, st.sampled_from(operations)).map(of)
