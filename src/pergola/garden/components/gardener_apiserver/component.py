"""gardener-apiserver as a component of the Garden."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pergola.api.kinds import SERVICE
from pergola.api.objects import JsonObject, Key, map_at
from pergola.garden.components import authorities, task_names
from pergola.garden.components.api_server.encryption import encryption_key
from pergola.garden.components.api_server.roll_out import learn_encryption, second_stage
from pergola.garden.components.component import Clusters, Component, Rendered, Stage
from pergola.garden.components.gardener_apiserver.registration import registration
from pergola.garden.components.gardener_apiserver.workload import (
    CERTIFICATE,
    NAME,
    PROGRAM,
    api_server,
    shared_parts,
    workload,
)
from pergola.garden.components.virtual_access import access_secret
from pergola.garden.components.workload_identity import signing_key
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import KUBE_SYSTEM

_SERVICE: Final = Key(NAMESPACE, NAME)
_SERVICE_LIMIT: Final = 30.0


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield its certificate, the key for etcd and the key that signs workload identities."""
    hosts = (
        *authorities.service_hosts(NAME, NAMESPACE),
        *authorities.service_hosts(NAME, KUBE_SYSTEM),
    )
    yield authorities.gardener_server(CERTIFICATE, *dict.fromkeys(hosts))
    yield encryption_key(landscape, api_server(landscape))
    yield signing_key(landscape)


def render(landscape: Landscape) -> Rendered:
    """Return the workload, and its registration once the address of its Service is known.

    Every pod must serve the new certificate before the old authority leaves the bundle. The flow
    therefore waits until the rollout has finished.
    """
    part = shared_parts(landscape)
    runtime = PROGRAM.runtime(*workload(landscape, part), is_awaited=True)
    direct = (access_secret(NAME), *part.objects)
    if not landscape.gardener_api_server_address:
        return Rendered(managed=(runtime,), direct=direct)
    virtual = PROGRAM.virtual(*registration(landscape))
    return Rendered(managed=(runtime, virtual), direct=direct)


async def learn(landscape: Landscape, clusters: Clusters) -> Landscape:
    """Learn how it encrypts now, and the address of its Service if it has one.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    landscape = await learn_encryption(landscape, clusters, api_server(landscape))
    service = await clusters.client.find(SERVICE, _SERVICE)
    return replace(landscape, gardener_api_server_address=_cluster_ip(service))


async def learn_address(landscape: Landscape, clusters: Clusters) -> Landscape | None:
    """Learn the address of its Service; None if it is the one that was rendered.

    Raises:
        NotReady: The Service has no address.
    """
    service = await clusters.wait(SERVICE, _SERVICE, _address_problem, _SERVICE_LIMIT)
    address = _cluster_ip(service)
    if address == landscape.gardener_api_server_address:
        return None
    return replace(landscape, gardener_api_server_address=address)


def _cluster_ip(service: JsonObject | None) -> str:
    return str(map_at(service or {}, "spec").get("clusterIP") or "")


def _address_problem(service: JsonObject | None) -> str | None:
    if service is None:
        return "it does not exist"
    return None if _cluster_ip(service) else "it has no cluster IP"


GARDENER_APISERVER: Final = Component(
    name=NAME,
    deploy="Deploying Gardener API Server",
    wait=task_names.GARDENER_API_SERVER_READY,
    after=(
        task_names.ETCDS_READY,
        task_names.API_SERVER_READY,
        task_names.VIRTUAL_RESOURCE_MANAGER_READY,
    ),
    learn=learn,
    credentials=credentials,
    render=render,
    then=(Stage(learn=learn_address, render=render), second_stage(api_server, render)),
    removable=PROGRAM.removable(),
)
