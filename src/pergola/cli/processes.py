"""The processes of Pergola in a cluster, recognized by their Deployments."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from pergola.api.objects import JsonObject, Key, labels_of, map_at, maps_at, name_of

if TYPE_CHECKING:
    from pergola.kube.client import Client

_PROGRAM: Final = "pergola"
_VERSION: Final = "app.kubernetes.io/version"
_BY_NAME: Final = {
    "gardener-operator": "operator",
    "gardener-resource-manager": "resource-manager",
    "virtual-garden-gardener-resource-manager": "resource-manager",
}
"""Deployments of Gardener whose image may be Pergola's: it decides by the configuration."""


class Process(NamedTuple):
    """A Deployment of Pergola, or of the original in its place.

    Attributes:
        component: such as `operator`, or `extension run aws`.
        version: as its label or the tag of its image says; empty if neither does.
        is_pergola: whether its command or image is Pergola's, as far as they tell.
    """

    component: str
    key: Key
    version: str
    image: str
    is_pergola: bool
    ready: int
    replicas: int
    selector: JsonObject


async def processes(client: "Client", namespace: str | None = None) -> list[Process]:
    """Return the processes of a namespace, or of the cluster, in order."""
    from pergola.api.kinds import DEPLOYMENT

    found: list[Process] = []
    async for page in client.pages(DEPLOYMENT, namespace):
        found += filter(None, map(process_of, page.items))
    return sorted(found, key=lambda each: (each.component, each.key))


def process_of(deployment: JsonObject) -> Process | None:
    """Return the process of a Deployment; None if it is of something else."""
    template = map_at(deployment, "spec", "template")
    for container in maps_at(template, "spec", "containers"):
        image = str(container.get("image") or "")
        words = _words(container)
        by_name = _BY_NAME.get(name_of(deployment), "")
        is_pergola = bool(words) or _repository(image) == _PROGRAM
        if is_pergola or by_name:
            labels = {**labels_of(template), **labels_of(deployment)}
            status = map_at(deployment, "status")
            return Process(
                component=" ".join(words) or by_name or name_of(deployment),
                key=Key.of(deployment),
                version=labels.get(_VERSION) or _tag(image),
                image=image,
                is_pergola=is_pergola,
                ready=int(status.get("readyReplicas") or 0),
                replicas=int(map_at(deployment, "spec").get("replicas") or 0),
                selector=map_at(deployment, "spec", "selector"),
            )
    return None


def _words(container: JsonObject) -> tuple[str, ...]:
    """Return the words after `pergola` in the command of a container, without options."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not words or str(words[0]).rpartition("/")[2] != _PROGRAM:
        return ()
    return tuple(_until_options(map(str, words[1:])))


def _until_options(words: Iterator[str]) -> Iterator[str]:
    for word in words:
        if word.startswith("-"):
            return
        yield word


def _repository(image: str) -> str:
    """Return the last part of an image's name: `pergola` of `registry/x/pergola:1@sha256:…`."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _tag(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2].removeprefix("v")
