"""Marks on the Deployments of API servers for completed steps of a rewrite (spec 20 §17.3).

A mark survives a restart of the operator. Its value identifies the rewrite, so that a mark of an
earlier change does not count; the original writes `true`, which always counts.
"""

from hashlib import sha256
from typing import Final

from pergola.api.kinds import DEPLOYMENT
from pergola.api.objects import Key, annotations_of
from pergola.garden.components import gardener_apiserver as gardener
from pergola.garden.components.api_server.encryption import key_name
from pergola.garden.components.api_server.part import ApiServer
from pergola.garden.components.kube_apiserver import component as kubernetes
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.client import Client
from pergola.operator.rotation.encryption.situation import desired, provider

LABELED: Final = "credentials.gardener.cloud/resources-labeled"
"""All objects have been rewritten; on the Deployment of kube-apiserver."""
SNAPSHOTTED: Final = "credentials.gardener.cloud/etcd-snapshotted"
"""A backup without data of the old key exists; on the Deployment of kube-apiserver."""

_ALWAYS: Final = "true"
_DIGITS: Final = 16


def servers(landscape: Landscape) -> tuple[ApiServer, ApiServer]:
    """Return kube-apiserver and gardener-apiserver."""
    return kubernetes.api_server(landscape), gardener.api_server(landscape)


def rewrite_id(landscape: Landscape) -> str:
    """Return the id of a rewrite: equal keys, providers and resources yield the same id."""
    keys = (landscape.credentials.name(key_name(server)) for server in servers(landscape))
    parts = [*keys, provider(landscape.garden), *sorted(desired(landscape.garden))]
    return sha256("\n".join(parts).encode()).hexdigest()[:_DIGITS]


async def is_marked(client: Client, landscape: Landscape, mark: str) -> bool:
    """Return whether a step is done for the current rewrite.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    deployment = await client.get(DEPLOYMENT, _key(landscape), metadata_only=True)
    return annotations_of(deployment).get(mark) in (rewrite_id(landscape), _ALWAYS)


async def patch_mark(client: Client, landscape: Landscape, mark: str) -> None:
    """Mark a step as done; raises as `is_marked` does."""
    annotations = {mark: rewrite_id(landscape)}
    patch = {"metadata": {"annotations": annotations}}
    await client.patch(DEPLOYMENT, _key(landscape), patch)


async def patch_unmarked(client: Client, landscape: Landscape) -> None:
    """Remove the marks of a rewrite; raises as `is_marked` does."""
    live = await client.get(DEPLOYMENT, _key(landscape), metadata_only=True)
    present = annotations_of(live).keys() & {LABELED, SNAPSHOTTED}
    if present:
        patch = {"metadata": {"annotations": dict.fromkeys(sorted(present))}}
        await client.patch(DEPLOYMENT, _key(landscape), patch)


def _key(landscape: Landscape) -> Key:
    return Key(NAMESPACE, kubernetes.api_server(landscape).deployment)
