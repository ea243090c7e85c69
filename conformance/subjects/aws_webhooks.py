"""Compares how the webhooks of AWS change objects, on the seed and in Shoots."""

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from typing import Final, cast

from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences
from conformance.oracles import Answer
from conformance.strategies.aws_webhooks import some_object, table
from conformance.subjects.aws_verdicts import OfAws, reviewed
from pergola.admission.review import Verdict
from pergola.admission.webhook import Webhook
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    JsonValue,
    Key,
)
from pergola.bundle.image_vector import ImageVector
from pergola.extension_api.cluster import Cluster
from pergola.extensions.seed import Seed
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.manifests import KUBE_SYSTEM
from pergola.providers.aws import control_plane
from pergola.providers.aws.control_plane.webhooks import AwsWebhooks, EtcdStorage
from pergola.resource_manager.webhooks.explanation import applied

_PEER: Final = "10.0.0.1"


class AwsControlPlaneWebhooks(OfAws):
    """Changes of an object by the webhooks of control planes on AWS."""

    name = "aws-webhooks"
    title = "AWS: objects that webhooks change"
    code = ("pergola.providers.aws.control_plane.webhooks",)

    def table(self) -> Iterator[JsonObject]:
        """Yield objects of each sort with each option."""
        return table()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return objects with random options."""
        return some_object()

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the changed object."""
        return answer.value if answer.outcome == "output" else answer.outcome

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Send the same object to the webhook, and compare every byte of what comes out."""
        verdict = answer_to(question)
        if answer.outcome != "output" or not verdict.allowed:
            theirs = (
                str(answer.value).split("\n", 1)[0] if answer.outcome != "output" else "allowed"
            )
            ours = "allowed" if verdict.allowed else verdict.message
            if (theirs == "allowed") != verdict.allowed:
                yield Difference("verdict", theirs, ours)
            return
        after = applied(question["object"], verdict.edits)
        yield from differences(answer.output, after, question["object"]["kind"])


def answer_to(question: JsonObject, *, peer: str = _PEER) -> Verdict:
    """Return what the webhook of a question says to its object.

    Args:
        peer: the address of the API server that asks.
    """
    return reviewed(webhooks_for(question)[question["webhook"]], question, peer=peer)


def webhooks_for(question: JsonObject) -> dict[str, Webhook]:
    """Return the webhooks on the seed of a question, by the first parts of their names."""
    objects = [question["cluster"], *filter(None, [question.get("secret")])]
    dns: JsonObject = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kube-dns", "namespace": KUBE_SYSTEM},
        "spec": {"ipFamilies": question.get("families") or []},
    }

    @asynccontextmanager
    async def access(_: Client, cluster: Cluster) -> AsyncGenerator[Client | None]:
        yield cast("Client", _Objects([dns]))

    given = question.get("etcd") or {}
    etcd = EtcdStorage(given.get("className") or "", given.get("capacity") or "10Gi")
    seed = Seed(cast("Client", _Objects(objects)), access)
    return {each.short_name: each for each in AwsWebhooks(seed, _images(), etcd).all()}


class _Objects:
    """A cluster that contains some objects; its only pod is that of an API server."""

    def __init__(self, objects: Sequence[JsonObject]) -> None:
        self._objects = {(each["kind"], Key.of(each)): each for each in objects}

    async def find(self, gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        """Return an object."""
        return self._objects.get((gvk.kind, key))

    async def get(self, gvk: GroupVersionKind, key: Key) -> JsonObject:
        """Return an object that must exist."""
        found = await self.find(gvk, key)
        if found is None:
            raise NotFound(404, {"message": f"{gvk.kind} {key} not found"})
        return found

    async def list(self, _: GroupVersionKind, **selectors: str) -> Sequence[JsonObject]:
        """Return the pods of an API server."""
        is_server = selectors["fields"] == f"status.podIP={_PEER}"
        clusters = [key.name for kind, key in self._objects if kind == "Cluster"]
        return [{"metadata": {"namespace": name}} for name in clusters] if is_server else []


@cache
def _images() -> ImageVector:
    return ImageVector.load((files(control_plane) / "images.yaml").read_bytes())
