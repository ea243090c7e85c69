"""Questions to the original's code: to deploy a resource manager in a place, and to wait for it."""

import asyncio
from typing import Final
from urllib.parse import urlsplit

from conformance.oracles import Answer, Oracle, OracleError
from conformance.places.clusters import SERVER, Clusters
from pergola.api.kinds import POD
from pergola.api.objects import JsonObject, maps_at
from pergola.health.pod_trouble import pod_trouble
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox.images.catalogue import named
from pergola.sandbox.module import kubernetes_version
from pergola.sandbox.on_demand import GARDENER_RESOURCE_MANAGER
from pergola.sandbox.process_node.selection import LABEL

LIMIT: Final = 100.0
"""Seconds for each of the two steps."""
TAIL: Final = 12
"""How many lines of a container's log are printed."""
_GRACE: Final = 90.0  # seconds, for definitions and authorities
_LONGEST: Final = 600  # characters of an error
_RESTARTS: Final = 4  # after which a container does not come up any more
_PAUSE: Final = 1.0  # seconds
_STEPS: Final = {
    "place/deploy": "Gardener's code to deploy the resource manager",
    "place/wait": "Gardener's code to find the resource manager ready",
}


class PlaceError(Exception):
    """A resource manager cannot be deployed in a place; the text says what was awaited."""


async def deploy(oracle: Oracle, clusters: Clusters, client: Client, limit: float = LIMIT) -> None:
    """Deploy a resource manager, and return when the original's code considers it to be ready.

    Args:
        client: the administrator's, of the source.
        limit: seconds for each step.

    Raises:
        PlaceError: it does not become ready.
        OracleError: the oracle ended.
    """
    question = _question(clusters, limit)
    for ask, what in _STEPS.items():
        answer = await _asked(oracle, ask, question, clusters, client)
        if answer.outcome != "output":
            said = " ".join(str(answer.value).split())[:_LONGEST]
            raise PlaceError(_sentence(f"gave up waiting for {what}: {said}", clusters))


async def _asked(
    oracle: Oracle, ask: str, question: JsonObject, clusters: Clusters, client: Client
) -> Answer:
    timeout = float(question["seconds"]) + _GRACE
    asking = asyncio.create_task(asyncio.to_thread(oracle.ask, ask, question, timeout))
    crashing = asyncio.create_task(_crashed(client, clusters.place.namespace))
    try:
        await asyncio.wait({asking, crashing}, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            return asking.result()
        oracle.close()  # which ends the question
        await asyncio.wait({asking})
        asking.exception()
        text = f"gave up waiting for {_STEPS[ask]}: {crashing.result()}"
        raise PlaceError(_sentence(text, clusters))
    except OracleError as error:
        # The question contains the key of an authority.
        raise OracleError(str(error).partition("; the question was:")[0]) from None
    finally:
        crashing.cancel()


async def _crashed(client: Client, namespace: str) -> str:
    """Return why a container does not come up, once that is certain."""
    while True:
        for pod in await client.list(POD, namespace, labels=LABEL):
            statuses = maps_at(pod, "status", "containerStatuses")
            if any(status["restartCount"] >= _RESTARTS for status in statuses):
                trouble = pod_trouble(pod)
                return trouble.problem if trouble else "its container ends again and again"
        await asyncio.sleep(_PAUSE)


def _sentence(text: str, clusters: Clusters) -> str:
    return f"{text}; the log of its container ends with:\n{clusters.tail(TAIL)}"


def _question(clusters: Clusters, limit: float) -> JsonObject:
    offer = named([GARDENER_RESOURCE_MANAGER])[0]
    pair = clusters.authority.pair
    port = urlsplit(load(clusters.target.kubeconfig).server).port
    return {
        "place": clusters.place.name,
        "kubeconfig": clusters.source.kubeconfig.read_text(),
        "version": kubernetes_version(),
        "image": f"{offer.repository}:{offer.version}",
        "server": f"{SERVER}:{port}" if clusters.place.has_target else "",
        "authority": {
            "certificate": pair.public.decode(),
            "key": pair.private.decode(),
        },
        "seconds": limit,
    }
