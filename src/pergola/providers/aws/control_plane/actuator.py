"""The actuator of ControlPlanes in AWS (spec 31 §6)."""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.resources import files
from typing import Final

from pergola.admission.webhook import Webhook
from pergola.api.field_errors import Cause
from pergola.api.objects import JsonObject
from pergola.bundle.image_vector import ImageVector
from pergola.extensions.actuator import Context
from pergola.extensions.control_planes import ControlPlaneProvider, Credential, Plan, Rendered
from pergola.extensions.health_checks.checks import HealthCheck
from pergola.extensions.seed import Seed
from pergola.providers.aws.control_plane.calico_conditions import remove_conditions_of_calico
from pergola.providers.aws.control_plane.checks import check
from pergola.providers.aws.control_plane.cloud_provider import cloud_controller as explained
from pergola.providers.aws.control_plane.health import health_checks
from pergola.providers.aws.control_plane.proxy_protocol import repeat_proxy_protocol
from pergola.providers.aws.control_plane.render import (
    cloud_controller,
    load_balancer,
    pod_networks,
    render,
)
from pergola.providers.aws.control_plane.subnets import places_load_balancers
from pergola.providers.aws.control_plane.webhooks import AwsWebhooks, EtcdStorage
from pergola.providers.aws.control_plane_config import CONTROL_PLANE_CONFIG, ControlPlaneConfig
from pergola.providers.aws.warnings import warn
from pergola.secrets_manager import Certificate, CertificateAuthority, Options, SigningCA, Use

AUTHORITY: Final = "ca-provider-aws-controlplane"
_SUFFIXES: Final = ("", ".svc", ".svc.cluster.local")


class AwsControlPlane(ControlPlaneProvider[ControlPlaneConfig]):
    """Installs the controllers that connect a Shoot to AWS.

    Args:
        images: by default those of the package, overridden by `IMAGEVECTOR_OVERWRITE`.
        etcd: the volumes of new etcds; by default those of the environment.
    """

    type = "aws"
    name = "provider-aws"
    registered_as = "pergola-aws"
    config = ControlPlaneConfig
    config_gvk = CONTROL_PLANE_CONFIG
    accounts = (
        cloud_controller.NAME,
        pod_networks.ROUTES,
        pod_networks.PREFIXES,
        load_balancer.NAME,
        "csi-provisioner",
        "csi-attacher",
        "csi-snapshotter",
        "csi-resizer",
        "csi-snapshot-controller",
        "csi-volume-modifier",
    )

    def __init__(self, images: ImageVector | None = None, etcd: EtcdStorage | None = None) -> None:
        self._images = images or ImageVector.from_environment(files(__package__) / "images.yaml")
        self._etcd = etcd or EtcdStorage.from_environment(os.environ)

    def webhooks(self, seed: Seed) -> Sequence[Webhook]:
        """Return the webhooks that adapt the rest of the control plane, nodes and Services."""
        return AwsWebhooks(seed, self._images, self._etcd).all()

    def check(self, plan: Plan[ControlPlaneConfig]) -> Iterator[Cause]:
        """Yield the problems of the config, the network and the Secret."""
        return check(plan)

    def credentials(self, namespace: str) -> Sequence[Credential]:
        """Return the authority, and the certificates of the servers."""
        webhooks = load_balancer.WEBHOOK_SERVICE
        return [
            Credential(CertificateAuthority(AUTHORITY), Options(persist=True)),
            _server(cloud_controller.SERVER, cloud_controller.NAME, namespace, Use.DEFAULT),
            # Webhooks are registered with the old authority and the new one at the same time.
            _server(webhooks, webhooks, namespace, Use.CURRENT),
        ]

    def render(self, plan: Plan[ControlPlaneConfig]) -> Rendered:
        """Return the objects of a plan.

        Raises:
            ExtensionError: the infrastructure or the Shoot lack something that the objects need.
        """
        images = partial(self._images.find, version=plan.shoot.kubernetes_version)
        return render(plan, images, AUTHORITY)

    async def complete(
        self, context: Context, obj: JsonObject, plan: Plan[ControlPlaneConfig]
    ) -> None:
        """Report what does not work without more subnets, and correct objects of the Shoot."""
        await remove_conditions_of_calico(context, obj, plan.shoot)
        await repeat_proxy_protocol(context, plan.shoot)
        if not places_load_balancers(plan.infrastructure):
            reason = explained(plan.infrastructure, plan.namespace).reason
            await warn(context.client, obj, [reason], context.clock)

    def health_checks(self) -> Sequence[HealthCheck]:
        """Return the checks behind the condition `ControlPlaneHealthy`."""
        return health_checks()


def _server(name: str, service: str, namespace: str, signer: Use) -> Credential:
    hosts = (service, *(f"{service}.{namespace}{suffix}" for suffix in _SUFFIXES))
    certificate = Certificate(
        name=name, common_name=service, hosts=hosts, for_server=True, publish_ca=False
    )
    return Credential(certificate, Options(signed_by=SigningCA(AUTHORITY, signer)))
