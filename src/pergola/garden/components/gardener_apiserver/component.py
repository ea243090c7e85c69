"""gardener-apiserver as a component of the Garden."""

from collections.abc import Iterator
from typing import Final

from pergola.garden.components import authorities
from pergola.garden.components.api_server.encryption import encryption_key
from pergola.garden.components.component import Component, Rendered
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


GARDENER_APISERVER: Final = Component(
    name=NAME,
    deploy="Deploying Gardener API Server",
    wait="Waiting until Gardener API server rolled out",
    after=(
        "Waiting until main and event ETCDs report readiness",
        "Waiting until Kubernetes API server rolled out",
        "Waiting until gardener-resource-manager for virtual garden rolled out",
    ),
    credentials=credentials,
    render=render,
    removable=PROGRAM.removable(),
)
