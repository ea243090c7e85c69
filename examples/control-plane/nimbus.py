"""The control plane of an invented cloud: one controller on the seed, and its rights in Shoots."""

from collections.abc import Iterator, Sequence

from pergola.api.field_errors import Cause, invalid, required
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.schema.declare import Value
from pergola.extensions.control_planes import (
    ControlPlaneProvider,
    Credential,
    Plan,
    Rendered,
    data_checksum,
)
from pergola.extensions.health_checks import HealthCheck, deployment
from pergola.manifests import (
    KUBE_SYSTEM,
    KUBECONFIG_PATH,
    account,
    kubeconfig_mount,
    kubeconfig_volume,
    manifest,
    role,
    rule,
    selector,
)
from pergola.secrets_manager import Certificate, CertificateAuthority, Options, SigningCA

NAME = "nimbus-controller"
SERVER = "nimbus-controller-server"
AUTHORITY = "ca-provider-nimbus-controlplane"


class NimbusConfig(Value):
    """The owner's configuration: `spec.provider.controlPlaneConfig` of a Shoot."""

    workers: int = 5
    """How many Services the controller reconciles in parallel."""


class NimbusControlPlane(ControlPlaneProvider[NimbusConfig]):
    """ControlPlanes of type `nimbus`."""

    type = "nimbus"
    name = "provider-nimbus"
    config = NimbusConfig
    config_gvk = GroupVersionKind("nimbus.example.org", "v1alpha1", "ControlPlaneConfig")
    accounts = (NAME,)

    def check(self, plan: Plan[NimbusConfig]) -> Iterator[Cause]:
        """Yield the problems of a ControlPlane."""
        if plan.config.workers < 1:
            yield invalid("spec.providerConfig.workers", plan.config.workers, "must be at least 1")
        if not plan.infrastructure.get("networkID"):
            yield required("spec.infrastructureProviderStatus.networkID", "the network is missing")

    def credentials(self, namespace: str) -> Sequence[Credential]:
        """Return an authority, and a certificate for the controller."""
        host = f"{NAME}.{namespace}.svc"
        server = Certificate(name=SERVER, common_name=NAME, hosts=(host,), for_server=True)
        return [
            Credential(CertificateAuthority(AUTHORITY), Options(persist=True)),
            Credential(server, Options(signed_by=SigningCA(AUTHORITY))),
        ]

    def render(self, plan: Plan[NimbusConfig]) -> Rendered:
        """Return the controller, and its permissions in the Shoot."""
        leases = rule("coordination.k8s.io", ["leases"], ["get", "create", "update"])
        permissions = role(NAME, KUBE_SYSTEM, [leases], account(NAME, KUBE_SYSTEM))
        return Rendered(seed=[_controller(plan)], shoot=permissions)

    def health_checks(self) -> Sequence[HealthCheck]:
        """Return the check behind the condition `ControlPlaneHealthy`."""
        return [deployment(NAME)]


def _controller(plan: Plan[NimbusConfig]) -> JsonObject:
    arguments = [
        f"--kubeconfig={KUBECONFIG_PATH}",
        f"--network={plan.infrastructure['networkID']}",
        f"--workers={plan.config.workers}",
    ]
    certificate = {"name": SERVER, "secret": {"secretName": plan.secret_of(SERVER)}}
    pod: JsonObject = {
        "containers": [
            {
                "name": NAME,
                "image": "registry.example.org/nimbus-controller:v1.0.0",
                "args": arguments,
                "volumeMounts": [kubeconfig_mount(), {"name": SERVER, "mountPath": "/tls"}],
            }
        ],
        "volumes": [kubeconfig_volume(plan.kubeconfig, NAME), certificate],
    }
    labels = {"app": NAME}
    checksum = {"checksum/secret-cloudprovider": data_checksum(plan.credentials)}
    template = {"metadata": {"labels": labels, "annotations": checksum}, "spec": pod}
    spec = {"replicas": plan.replicas(), "selector": selector(labels), "template": template}
    return manifest("apps/v1", "Deployment", NAME, namespace=plan.namespace, spec=spec)
