"""Deployment of components that need more than applying their objects (spec 20 §12)."""

import base64
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from pergola.api.kinds import SECRET, SERVICE
from pergola.api.objects import JsonObject, Key, annotations_of, map_at
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.components.component import Component
from pergola.garden.components.gardener_access import EXTERNAL, GARDENER_ACCESS, INTERNAL
from pergola.garden.components.gardener_apiserver import workload as gardener_apiserver
from pergola.garden.components.gardener_apiserver.component import GARDENER_APISERVER
from pergola.garden.components.gardener_apiserver.workload import NAME as GARDENER_SERVICE
from pergola.garden.components.gardener_dashboard.component import GARDENER_DASHBOARD
from pergola.garden.components.kube_apiserver import component as kube_apiserver
from pergola.garden.components.kube_apiserver.component import KUBE_APISERVER
from pergola.garden.components.kube_apiserver_exposure.services import API_SERVER_SERVICE
from pergola.garden.components.observability.prometheus_garden.component import (
    PROMETHEUS_GARDEN,
)
from pergola.garden.components.resource_manager.virtual import VIRTUAL_RESOURCE_MANAGER
from pergola.garden.components.virtual_access import GENERIC_KUBECONFIG, KUBECONFIG
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.kube.errors import ConfigurationError
from pergola.kube.kubeconfig_file import parse_kubeconfig
from pergola.operator.reconcile import virtual_manager
from pergola.operator.reconcile.component_tasks import Deploy
from pergola.operator.reconcile.extension_resources.load_balancer import wait_for_address
from pergola.operator.reconcile.virtual_content import observe_seeds
from pergola.operator.rotation.encryption import roll_out
from pergola.operator.run.observed import cluster_ip
from pergola.operator.run.run import Run

GENERIC_NAME: Final = "generic-token-kubeconfig.secret.gardener.cloud/name"
"""The annotation of a Garden that names the Secret with the generic kubeconfig."""

_GARDENER: Final = Key(NAMESPACE, GARDENER_SERVICE)
_SERVICE_LIMIT: Final = 30.0


def own_tasks(run: Run, garden: Key) -> Mapping[str, Deploy]:
    """Return how to deploy these components, by name."""
    return {
        GENERIC_KUBECONFIG.name: partial(publish_generic_kubeconfig, run, garden),
        API_SERVER_SERVICE.name: partial(deploy_api_server_service, run),
        KUBE_APISERVER.name: partial(deploy_kube_api_server, run),
        VIRTUAL_RESOURCE_MANAGER.name: partial(virtual_manager.deploy, run),
        GARDENER_APISERVER.name: partial(deploy_gardener_api_server, run),
        GARDENER_ACCESS.name: partial(deploy_access, run),
        PROMETHEUS_GARDEN.name: partial(deploy_with_seeds, run, PROMETHEUS_GARDEN),
        GARDENER_DASHBOARD.name: partial(deploy_with_seeds, run, GARDENER_DASHBOARD),
    }


async def publish_generic_kubeconfig(run: Run, garden: Key) -> None:
    """Name the Secret with the generic kubeconfig in an annotation of the Garden."""
    name = run.current().credentials.name(KUBECONFIG)
    live = await run.client.get(GARDEN, garden, metadata_only=True)
    if annotations_of(live).get(GENERIC_NAME) != name:
        patch = {"metadata": {"annotations": {GENERIC_NAME: name}}}
        await run.client.patch(GARDEN, garden, patch)


async def deploy_api_server_service(run: Run) -> None:
    """Deploy the Services of the API server, and wait until the gateway has an address."""
    await run.deployer.apply(API_SERVER_SERVICE.objects(run.current()))
    await wait_for_address(run.client, API_SERVER_SERVICE.limit, run.note)


async def deploy_kube_api_server(run: Run) -> None:
    """Deploy kube-apiserver; raises as `roll_out.deploy` does."""

    async def apply() -> None:
        await run.deployer.apply(KUBE_APISERVER.objects(run.current()))

    server = kube_apiserver.api_server(run.current())
    await roll_out.deploy(run, KUBE_APISERVER, server, apply)


async def deploy_gardener_api_server(run: Run) -> None:
    """Deploy gardener-apiserver; raises as `roll_out.deploy` does."""
    server = gardener_apiserver.api_server(run.current())
    apply = partial(_apply_gardener_api_server, run)
    await roll_out.deploy(run, GARDENER_APISERVER, server, apply)


async def _apply_gardener_api_server(run: Run) -> None:
    """Apply gardener-apiserver; register it once the address of its Service is known."""
    await run.deployer.apply(GARDENER_APISERVER.objects(run.current()))
    service = await run.wait(SERVICE, _GARDENER, _address_problem, _SERVICE_LIMIT)
    address = cluster_ip(service)
    if address != run.current().gardener_api_server_address:
        run.update(gardener_api_server_address=address)
        await run.deployer.apply(GARDENER_APISERVER.objects(run.current()))


async def deploy_access(run: Run) -> None:
    """Deploy the access of the operator and administrators; kubeconfigs keep their tokens."""
    run.update(access_tokens=await access_tokens(run.client))
    await run.deployer.apply(GARDENER_ACCESS.objects(run.current()))


async def deploy_with_seeds(run: Run, component: Component) -> None:
    """Deploy a component whose configuration names Seeds."""
    await observe_seeds(run)
    await run.deployer.apply(component.objects(run.current()))


async def access_tokens(client: Client) -> dict[str, str]:
    """Return the tokens in the kubeconfigs of the access Secrets, by the Secret's name."""
    tokens = {}
    for name in (EXTERNAL, INTERNAL):
        secret = await client.find(SECRET, Key(NAMESPACE, name))
        tokens[name] = _token(map_at(secret or {}, "data").get("kubeconfig"))
    return {name: token for name, token in tokens.items() if token}


def _token(encoded: object) -> str:
    with suppress(ValueError, ConfigurationError):
        content = base64.b64decode(str(encoded or ""))
        kubeconfig = parse_kubeconfig([(Path(EXTERNAL), content)])
        return kubeconfig.user(kubeconfig.context()).text("token")
    return ""


def _address_problem(service: JsonObject | None) -> str | None:
    if service is None:
        return "it does not exist"
    return None if cluster_ip(service) else "it has no cluster IP"
