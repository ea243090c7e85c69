"""The component kube-apiserver (spec 20 §15.2)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.operator_v1alpha1.api_server import AdmissionPlugin
from pergola.garden.components import task_names
from pergola.garden.components.api_server.admission import admission
from pergola.garden.components.api_server.audit import audit
from pergola.garden.components.api_server.encryption import encryption, encryption_key
from pergola.garden.components.api_server.part import ApiServer
from pergola.garden.components.api_server.roll_out import learn_encryption, second_stage
from pergola.garden.components.api_server.serving import serving
from pergola.garden.components.component import Clusters, Component, Rendered
from pergola.garden.components.conventions import terminates_tls
from pergola.garden.components.etcds.etcds import ETCDS
from pergola.garden.components.kube_apiserver import identities
from pergola.garden.components.kube_apiserver.authentication import authentication
from pergola.garden.components.kube_apiserver.authorization import authorization
from pergola.garden.components.kube_apiserver.flags import flags
from pergola.garden.components.kube_apiserver.workload import CONTAINER, workload
from pergola.garden.components.removal import removable
from pergola.garden.components.virtual_access import API_SERVER
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credential

_PLUGINS: Final = (AdmissionPlugin(name="NodeRestriction"),)
# A gateway that terminates TLS opens many streams on few connections.
_BEHIND_GATEWAY: Final = {"UnauthenticatedHTTP2DOSMitigation": False}


def api_server(landscape: Landscape) -> ApiServer:
    """Return the properties that kube-apiserver shares with gardener-apiserver."""
    return ApiServer(
        name=CONTAINER,
        deployment=API_SERVER,
        audit_policy="audit-policy-config",
        settings=landscape.api_server,
        always_encrypted=("secrets",),
    )


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield its certificates and tokens, and its key for encryption at rest."""
    yield from identities.credentials(landscape)
    yield encryption_key(landscape, api_server(landscape))


def render(landscape: Landscape) -> Rendered:
    """Return the workload, and the Secrets and ConfigMaps that it mounts."""
    server = api_server(landscape)
    gates = _BEHIND_GATEWAY if terminates_tls(landscape) else {}
    part = (
        flags(landscape)
        + identities.identities(landscape)
        + serving(landscape, server, identities.CERTIFICATE, gates)
        + audit(landscape, server)
        + admission(landscape, server, _PLUGINS)
        + encryption(landscape, server)
        + authentication(landscape)
        + authorization(landscape)
    )
    return Rendered(direct=(*part.objects, *workload(landscape, part)))


async def learn(landscape: Landscape, clusters: Clusters) -> Landscape:
    """Learn how it encrypts now; raises as `learn_encryption` does."""
    return await learn_encryption(landscape, clusters, api_server(landscape))


KUBE_APISERVER: Final = Component(
    name=API_SERVER,
    deploy="Deploying Kubernetes API Server",
    wait=task_names.API_SERVER_READY,
    after=(
        ETCDS.ready,
        task_names.EXTENSIONS_BEFORE,
    ),
    learn=learn,
    credentials=credentials,
    render=render,
    then=(second_stage(api_server, render),),
    limit=300.0,
    removable=removable(
        f"Deployment {API_SERVER}",
        f"HorizontalPodAutoscaler {API_SERVER}",
        f"VerticalPodAutoscaler {API_SERVER}-vpa",
        f"PodDisruptionBudget {API_SERVER}",
        f"ServiceMonitor garden-{API_SERVER}",
    ),
)
