"""A cluster whose API server calls the resource manager's webhooks, for tests.

The server listens on one port for a whole run, so that an API server that remembers an old
registration for a moment still reaches the right place.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import orjson

from pergola.admission.configurations import configuration_keys
from pergola.api import marks
from pergola.api.kinds import SERVICE_ACCOUNT, VERTICAL_POD_AUTOSCALER
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at
from pergola.api.resource_manager_config import ResourceManagerConfiguration, configuration_from
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, ApiError, KubeError, NotFound
from pergola.kube.kubeconfig import load
from pergola.kube.transport import Transport
from pergola.resource_manager.assembly import Clusters
from pergola.resource_manager.serving import WebhookServing, configuration_name, installation_of
from pergola.resource_manager.webhooks.extension_validation.kinds import KINDS
from pergola.resource_manager.webhooks.extension_validation.simple_kinds import Kind
from pergola.resource_manager.webhooks.system_components_config import CONSIDER
from pergola.runtime.metrics import Metrics
from pergola.sandbox import Sandbox
from pergola.testing.crds import definition, serve
from pergola.testing.waiting import PATIENCE, running, until

AUTOSCALER: Final = VERTICAL_POD_AUTOSCALER
HOME: Final = "garden"
HOST: Final = "api.example.org"
SCHEDULER: Final = "bin-packing-scheduler"
POOL: Final = {"pool": "system"}
ROLES: Final = {marks.ROLE: "shoot", CONSIDER: "true"}

_CLUSTER_WIDE: Final = ("BackupBucket", "BackupEntry")
_SPECS: Final[dict[str, JsonObject]] = {
    "BackupEntry": {"bucketName": "b"},
    "Bastion": {
        "userData": "Zm9v",
        "ingress": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
    },
    "ContainerRuntime": {"binaryPath": "/bin", "workerPool": {"name": "p"}},
    "DNSRecord": {"name": "a.example.org", "recordType": "A", "values": ["10.0.0.1"]},
    "Network": {"podCIDR": "10.1.0.0/16", "serviceCIDR": "10.2.0.0/16"},
    "OperatingSystemConfig": {"purpose": "reconcile", "criConfig": {"name": "containerd"}},
    "SelfHostedShootExposure": {
        "port": 443,
        "endpoints": [
            {"nodeName": "n", "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}
        ],
    },
}

Where: TypeAlias = Literal["runtime", "target"]


def settings(kind: Where, port: int) -> JsonObject:
    """Return a configuration with all webhooks that change or judge objects."""
    on: JsonObject = {"enabled": True}
    own = on | {"installation": kind, "namespace": HOME, "url": "https://127.0.0.1"}
    return {
        "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
        "kind": "ResourceManagerConfiguration",
        "leaderElection": {"leaderElect": False},
        "server": {"webhooks": {"bindAddress": "127.0.0.1", "port": port, "selfSigned": own}},
        "controllers": {"tokenInvalidator": on},
        "webhooks": {
            "tokenInvalidator": on,
            "crdDeletionProtection": on,
            "extensionValidation": on,
            "projectedTokenMount": on,
            "seccompProfile": on,
            "podTopologySpreadConstraints": on,
            "systemComponentsConfig": on | {"podNodeSelector": POOL},
            "podSchedulerName": on | {"schedulerName": SCHEDULER},
            "kubernetesServiceHost": on | {"host": HOST},
            "endpointSliceHints": on,
            "vpaInPlaceUpdates": on,
            "podKubeAPIServerLoadBalancing": on,
        },
    }


@dataclass(frozen=True)
class WebhookSite:
    """A cluster, and an installation whose webhooks may be registered there.

    Attributes:
        client: the administrator's.
        port: where the webhooks are served, if they are.
    """

    sandbox: Sandbox
    client: Client
    port: int

    def configuration(self, kind: Where = "runtime") -> ResourceManagerConfiguration:
        """Return the configuration of an installation."""
        return configuration_from(settings(kind, self.port))[0]

    @asynccontextmanager
    async def serving(self, kind: Where = "runtime") -> AsyncGenerator[WebhookServing]:
        """Serve the webhooks until the block ends, as a process does; they stay registered."""
        serving = WebhookServing(
            self.configuration(kind), Clusters(self.client, self.client), Metrics()
        )
        async with serving.served(), running(*serving.units, *serving.leading()):
            for gvk, key in configuration_keys(configuration_name(serving.installation)):
                if kind == "runtime" or gvk.kind.startswith("Mutating"):
                    await until(self.client, gvk, key, lambda _: True)
            yield serving

    async def unregister(self, kind: Where = "runtime") -> None:
        """Delete the registration, if it exists."""
        name = configuration_name(installation_of(self.configuration(kind)))
        for gvk, key in configuration_keys(name):
            with suppress(NotFound):
                await self.client.delete(gvk, key)

    async def forgotten(self) -> None:
        """Wait until the API server no longer calls webhooks: it learns this by watching."""
        async with asyncio.timeout(PATIENCE):
            while await self._is_called():
                await self.client.get_raw("/version")

    async def _is_called(self) -> bool:
        for namespace in (HOME, "kube-system"):
            for obj in (pod(namespace, "probe"), _invalid(namespace)):
                try:
                    created = await self.client.create(obj, dry_run=True)
                except ApiError:
                    return True
                if obj["kind"] == "Pod" and effects(created):
                    return True
        return False

    async def add_namespace(self, name: str = "", **labels: str) -> str:
        """Create a namespace in which pods can be created; by default with a new name."""
        name = name or f"site-{secrets.token_hex(4)}"
        metadata = {"name": name, "labels": labels}
        with suppress(AlreadyExists):
            await self.client.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            )
        await until(self.client, SERVICE_ACCOUNT, Key(name, "default"), lambda _: True)
        return name

    async def add_account(self, namespace: str, name: str, *, automount: bool) -> None:
        """Create or update a ServiceAccount."""
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": namespace},
            "automountServiceAccountToken": automount,
        }
        await self.client.apply(account, manager="pergola-testing", force=True)

    async def add_definitions(self, definitions: Iterable[JsonObject]) -> None:
        """Create CRDs; return when the API server serves them."""
        desired = list(definitions)
        await serve(self.client, *desired)

    async def ask(
        self,
        method: str,
        gvk: GroupVersionKind,
        key: Key,
        body: JsonObject | None = None,
        **query: str,
    ) -> JsonObject:
        """Send a request without a client method: for one object, or all if it has no name."""
        resource = await self.client.resource(gvk)
        path = resource.item(key) if key.name else resource.collection(key.namespace)
        sent = orjson.dumps(body) if body is not None else None
        transport = Transport(load(self.sandbox.kubeconfig))
        try:
            answer: JsonObject = orjson.loads(
                await transport.request(method, path, query=query or None, body=sent)
            )
        finally:
            await transport.close()
        return answer

    async def effective(self, probe: Callable[[], Awaitable[bool]]) -> None:
        """Wait until the registration is effective: the API server learns of it by watching."""
        async with asyncio.timeout(PATIENCE):
            while not await probe():
                await self.client.get_raw("/version")

    async def mutates(self, namespace: str, *, labels: dict[str, str] | None = None) -> bool:
        """Return whether a pod that is created there passes the webhook for seccomp profiles."""
        obj = pod(namespace, "probe", labels=labels)
        try:
            return "seccomp" in effects(await self.client.create(obj, dry_run=True))
        except ApiError:
            return False

    async def validates(self, namespace: str) -> bool:
        """Return whether an invalid object is refused."""
        try:
            await self.client.create(_invalid(namespace), dry_run=True)
        except KubeError as error:
            return "spec.type" in str(error)
        return False


def _invalid(namespace: str) -> JsonObject:
    """Return an Extension that only a webhook refuses."""
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Extension",
        "metadata": {"name": "probe", "namespace": namespace},
    }


def definition_of(kind: Kind) -> JsonObject:
    """Return a CRD of a kind that is validated; it takes anything, and has a status."""
    return definition(
        GroupVersionKind(kind.group, "v1alpha1", kind.kind),
        plural=kind.plural,
        scope="Namespaced" if kind.namespaced else "Cluster",
        has_status=True,
    )


def definitions() -> list[JsonObject]:
    """Return the CRDs of all kinds that webhooks know: extensions, etcd, autoscalers."""
    return [*map(definition_of, KINDS), definition(AUTOSCALER)]


def valid(gvk: GroupVersionKind, namespace: str, name: str = "x") -> JsonObject:
    """Return an extension object that the validation lets through."""
    placed = {"type": "t", "region": "r", "secretRef": {"name": "s", "namespace": namespace}}
    if gvk.kind == "OperatingSystemConfig":
        placed = {"type": "t"}
    metadata: JsonObject = {"name": name}
    if gvk.kind not in _CLUSTER_WIDE:
        metadata["namespace"] = namespace
    spec = {} if gvk.kind == "Etcd" else placed | _SPECS.get(gvk.kind, {})
    return {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "metadata": metadata,
        "spec": spec,
    }


def pod(
    namespace: str, name: str, *, labels: dict[str, str] | None = None, account: str = ""
) -> JsonObject:
    """Return a pod that each webhook changes."""
    labels = {"pod-template-hash": "abc", marks.MANAGED_BY: "gardener"} | (labels or {})
    constraint: JsonObject = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    secret = {"secretName": "generic-token-kubeconfig-1", "optional": True}
    spec: JsonObject = {
        "containers": [{"name": "a", "image": "registry.example/a:1"}],
        "initContainers": [{"name": "b", "image": "registry.example/b:1"}],
        "topologySpreadConstraints": [constraint],
        "volumes": [{"name": "kubeconfig", "secret": secret}],
    }
    if account:
        spec["serviceAccountName"] = account
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
    }


def effects(found: JsonObject) -> set[str]:
    """Return which webhooks changed a pod that was made by `pod`."""
    spec = found["spec"]
    containers = [*spec["containers"], *spec["initContainers"]]
    variables = [{env["name"]: env.get("value") for env in maps_at(c, "env")} for c in containers]
    matched = map_at(spec["topologySpreadConstraints"][0], "labelSelector", "matchLabels")
    signs = {
        "token": any(v["name"] == "kube-api-access-gardener" for v in spec["volumes"]),
        "scheduler": spec["schedulerName"] == SCHEDULER,
        "seccomp": map_at(spec, "securityContext").get("seccompProfile")
        == {"type": "RuntimeDefault"},
        "host": all(found.get("KUBERNETES_SERVICE_HOST") == HOST for found in variables),
        "balancing": bool(spec.get("hostAliases")),
        "system": map_at(spec, "nodeSelector") == POOL,
        "spread": matched.get("pod-template-hash") == "abc",
    }
    return {name for name, is_there in signs.items() if is_there}
