"""All webhooks of control planes in AWS, and what they concern (spec 31 §8)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from pergola.admission.draft import Draft
from pergola.admission.review import GroupVersionResource
from pergola.admission.webhook import Webhook
from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at, namespace_of
from pergola.bundle.image_vector import ImageVector
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.seed import Seed
from pergola.extensions.webhooks.mutation import Mutate, from_objects
from pergola.extensions.webhooks.objects_mutator import (
    ByCaller,
    ObjectMutation,
    control_plane_mutator,
    shoot_objects_mutator,
)
from pergola.providers.aws.control_plane.credentials import SECRET_NAME
from pergola.providers.aws.control_plane.webhooks import cloud_credentials, deployments, machines
from pergola.providers.aws.control_plane.webhooks.etcds import MAIN, OTHERS, EtcdStorage
from pergola.providers.aws.control_plane.webhooks.node_files import ECR_PROVIDER
from pergola.providers.aws.control_plane.webhooks.operating_system import (
    adapt_config_of_nodes,
    node_settings,
)
from pergola.providers.aws.control_plane.webhooks.services import dual_stack
from pergola.providers.aws.control_plane.webhooks.volume_autoscalers import mutate_autoscaler
from pergola.providers.aws.workload_identity import has_workload_identity

CLOUD: Final = "aws"
COMPONENT: Final = "provider-aws"
MUTATED: Final = {
    "matchLabels": {"provider.extensions.gardener.cloud/mutated-by-controlplane-webhook": "true"}
}
"""Objects for which gardenlet asks to be changed."""
CREDENTIALS: Final = {"matchLabels": {"gardener.cloud/purpose": "cloudprovider"}}
UNMANAGED: Final = {
    "matchExpressions": [{"key": "resources.gardener.cloud/managed-by", "operator": "DoesNotExist"}]
}
"""Objects of users: those of the resource manager are changed where they are rendered."""
NGINX: Final = {
    "matchLabels": {"app": "nginx-ingress", "component": "controller", "release": "addons"}
}

PROXY_PROTOCOL: Final = "use-proxy-protocol"
"""The key in the ConfigMap of nginx."""

DEPLOYMENTS: Final = GroupVersionResource("apps", "v1", "deployments")
VPAS: Final = GroupVersionResource("autoscaling.k8s.io", "v1", "verticalpodautoscalers")
NODE_CONFIGS: Final = GroupVersionResource(
    "extensions.gardener.cloud", "v1alpha1", "operatingsystemconfigs"
)
ETCDS: Final = GroupVersionResource("druid.gardener.cloud", "v1alpha1", "etcds")
VOLUME_AUTOSCALERS: Final = GroupVersionResource(
    "autoscaling.gardener.cloud", "v1alpha1", "persistentvolumeclaimautoscalers"
)
SECRETS: Final = GroupVersionResource("", "v1", "secrets")
SERVICES: Final = GroupVersionResource("", "v1", "services")
CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")

_OF_KUBERNETES: Final = {
    deployments.API_SERVER: deployments.adapt_api_server,
    "virtual-garden-kube-apiserver": deployments.adapt_api_server,
    deployments.CONTROLLER_MANAGER: deployments.adapt_controller_manager,
    "virtual-garden-kube-controller-manager": deployments.adapt_controller_manager,
    deployments.SCHEDULER: deployments.adapt_scheduler,
    deployments.AUTOSCALER: deployments.adapt_autoscaler,
}
_MACHINES: Final = "machine-controller-manager"
_CLOUD_IS_EXTERNAL: Final = "AWS has a cloud controller manager of its own"
_HAS_DRIVER: Final = "machines on AWS need a driver"


@dataclass(frozen=True, slots=True)
class AwsWebhooks:
    """The webhooks of control planes in AWS.

    Args:
        seed: for Clusters, and the Secrets with credentials.
        images: of the driver for machines, and of files on nodes.
        etcd: the volumes of new etcds.
    """

    seed: Seed
    images: ImageVector
    etcd: EtcdStorage

    def all(self) -> list[Webhook]:
        """Return those on the seed, then those in Shoots."""
        return [*self._on_the_seed(), *self._in_shoots()]

    def _on_the_seed(self) -> list[Webhook]:
        credentials = ObjectMutation(
            resource=SECRETS, mutate=self._write_credentials, names=(SECRET_NAME,)
        )
        etcds = ObjectMutation(resource=ETCDS, mutate=self.etcd.mutate, names=(MAIN, *OTHERS))
        autoscalers = ObjectMutation(resource=VOLUME_AUTOSCALERS, mutate=mutate_autoscaler)
        return [
            control_plane_mutator(
                COMPONENT,
                [credentials],
                purpose="cloudprovider",
                cloud=CLOUD,
                object_selector=CREDENTIALS,
            ),
            control_plane_mutator(
                COMPONENT, self._mutations(), cloud=CLOUD, object_selector=MUTATED
            ),
            control_plane_mutator(COMPONENT, [autoscalers], purpose="seed-pvca"),
            control_plane_mutator(COMPONENT, [etcds], purpose="seedprovider", seed=CLOUD),
        ]

    def _mutations(self) -> list[ObjectMutation]:
        of_kubernetes = [
            ObjectMutation(
                resource=DEPLOYMENTS,
                names=(name,),
                mutate=self._by_shoot(adapt, _CLOUD_IS_EXTERNAL),
            )
            for name, adapt in _OF_KUBERNETES.items()
        ]
        return [
            *of_kubernetes,
            ObjectMutation(resource=DEPLOYMENTS, mutate=self._add_driver, names=(_MACHINES,)),
            ObjectMutation(
                resource=VPAS,
                mutate=from_objects(machines.with_driver_policy, _HAS_DRIVER),
                names=(f"{_MACHINES}-vpa",),
            ),
            ObjectMutation(
                resource=NODE_CONFIGS,
                mutate=self._by_shoot(self._adapt_nodes, "nodes on AWS"),
            ),
        ]

    def _in_shoots(self) -> list[Webhook]:
        services = ObjectMutation(
            resource=SERVICES, mutate=ByCaller(partial(dual_stack, self.seed))
        )
        ingress = ObjectMutation(resource=CONFIG_MAPS, mutate=_use_proxy_protocol)
        return [
            shoot_objects_mutator(COMPONENT, "shoot-configmap", [ingress], object_selector=NGINX),
            shoot_objects_mutator(
                COMPONENT,
                "shoot-service",
                [services],
                namespace_selector={},
                object_selector=UNMANAGED,
            ),
            shoot_objects_mutator(
                COMPONENT, "shoot-service-nginx-ingress", [services], object_selector=NGINX
            ),
        ]

    def _by_shoot(
        self, adapt: Callable[[JsonObject, Shoot], JsonObject], because: str
    ) -> Callable[[Draft, JsonObject | None], Awaitable[None]]:
        async def mutate(draft: Draft, old: JsonObject | None) -> None:
            shoot = await self.seed.shoot(namespace_of(draft.object))
            from_objects(lambda obj: adapt(obj, shoot), because)(draft, old)

        return mutate

    def _adapt_nodes(self, obj: JsonObject, shoot: Shoot) -> JsonObject:
        image = partial(self.images.find, ECR_PROVIDER, version=shoot.kubernetes_version)
        return adapt_config_of_nodes(obj, node_settings(shoot), image)

    async def _add_driver(self, draft: Draft, old: JsonObject | None) -> None:
        namespace = namespace_of(draft.object)
        key = Key(namespace, SECRET_NAME)
        secret = await self.seed.find(SECRET, key)
        if secret is None:
            raise ExtensionError(f"Secret {key} with the credentials of AWS does not exist yet")
        shoot = await self.seed.shoot(namespace)
        add: Mutate = from_objects(
            partial(
                machines.with_driver,
                image=self.images.find(machines.DRIVER),
                is_self_hosted=shoot.is_self_hosted,
                workload_identity=has_workload_identity(secret),
            ),
            _HAS_DRIVER,
        )
        add(draft, old)

    async def _write_credentials(self, draft: Draft, old: JsonObject | None) -> None:
        shoot = await self.seed.shoot(namespace_of(draft.object))
        region = str(map_at(shoot.raw, "spec").get("region") or "")
        write = from_objects(
            partial(cloud_credentials.with_credentials_file, region=region),
            "controllers read their credentials for AWS from a file",
        )
        write(draft, old)


def _use_proxy_protocol(draft: Draft, _: JsonObject | None) -> None:
    if not isinstance(draft.get("data"), dict | None):
        return
    draft.set(("data", PROXY_PROTOCOL), "true", "load balancers hide the address of clients")
