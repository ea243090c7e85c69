"""All inputs of rendering a Garden, as one value (design §8).

Building a `Landscape` reads what all components share; each component learns the rest when it is
deployed, into a copy of its own. Components render purely from it, so equal landscapes yield equal
objects.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self

from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import Garden
from pergola.api.operator_v1alpha1.kube_api_server import KubeApiServer
from pergola.api.operator_v1alpha1.runtime_cluster import RuntimeCluster
from pergola.api.operator_v1alpha1.status import CredentialsRotation
from pergola.api.operator_v1alpha1.virtual_cluster import VirtualCluster
from pergola.bundle.image_vector import ImageVector
from pergola.bundle.names import content
from pergola.bundle.versions import Version
from pergola.garden.landscape.credentials import Credentials
from pergola.garden.landscape.errors import ReferenceMissing

NAMESPACE: Final = "garden"
"""The namespace of all components in the runtime cluster, and of Gardener in the virtual one."""

WebhookConfigurations = Callable[[JsonObject, bytes], Sequence[JsonObject]]
"""Returns the webhook configurations of the runtime cluster's resource manager, from its
configuration file and the certificates of its server's authority."""

SEVERAL: Final = 2
_SAME_ZONE: Final = Version(1, 34)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTolerations:
    """The seconds for which pods tolerate unavailable nodes; None for the cluster's default."""

    not_ready: int | None = None
    unreachable: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Landscape:
    """One Garden, with all inputs of its components.

    Attributes:
        garden: With all defaults.
        runtime_version: The Kubernetes version of the runtime cluster, e.g. `1.34.2`.
        gardener_version: The version of the Gardener images, e.g. `v1.130.0`.
        images: The image vector.
        webhook_configurations: Declared by the resource manager. Products do not import each other,
            so the process passes them in.
        feature_gates: All feature gates of the operator.
        log_level: `logLevel` of the operator's configuration.
        log_format: `logFormat` of the operator's configuration.
        is_self_hosted: Whether the runtime cluster is a Shoot that hosts its own control plane.
        network_policy_selectors: `controllers.networkPolicy.additionalNamespaceSelectors` of the
            operator's configuration.
        etcd_config: `controllers.garden.etcdConfig` of the operator's configuration.
        node_tolerations: `nodeToleration` of the operator's configuration.
        references: The Secrets and ConfigMaps that the Garden names, by kind and key.
        extensions: The operator's Extensions in the runtime cluster, by name.
        wildcard_certificate: The Secret with the wildcard certificate of the garden, if any.
        credentials: The authorities; in the landscape of a component, also what it needs.

    A component learns the rest itself, when it is deployed; for others these have no value:
        backup_secret: The Secret with the backup credentials, if it is not the one that the Garden
            names.
        gardener_api_server_address: The cluster IP of the Service `gardener-apiserver`; empty until
            the runtime cluster has it.
        access_tokens: The current tokens in the kubeconfigs of the Secrets `gardener` and
            `gardener-internal`, by the name of the Secret.
        terminal_seed: The Seed on which the dashboard runs administrators' terminals; empty if none
            exists yet.
        is_new_key_known: Whether all replicas of an API server know the new encryption key during
            its rotation.
        encryption_configuration: The Secret that an API server mounts as its encryption
            configuration; empty if there is none.
        seed_domains: The ingress domains of the Seeds with reachable networks.
        own_seed_domain: The ingress domain of the Seed that is the runtime cluster; empty if there
            is none.
        seed_password: The name of the Secret with the password of the Seeds' observability hosts;
            empty until it exists.
    """

    garden: Garden
    runtime_version: str
    gardener_version: str
    images: ImageVector
    webhook_configurations: WebhookConfigurations
    log_level: str = "info"
    log_format: str = "json"
    is_self_hosted: bool = False
    network_policy_selectors: tuple[JsonObject, ...] = ()
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    etcd_config: JsonObject = field(default_factory=dict)
    node_tolerations: NodeTolerations = NodeTolerations()
    references: Mapping[tuple[str, Key], JsonObject] = field(default_factory=dict)
    extensions: tuple[JsonObject, ...] = ()
    wildcard_certificate: JsonObject | None = None
    credentials: Credentials = field(default_factory=Credentials)
    backup_secret: str = ""
    gardener_api_server_address: str = ""
    access_tokens: Mapping[str, str] = field(default_factory=dict)
    terminal_seed: str = ""
    is_new_key_known: bool = False
    encryption_configuration: str = ""
    seed_domains: tuple[str, ...] = ()
    own_seed_domain: str = ""
    seed_password: str = ""

    @property
    def runtime(self) -> RuntimeCluster:
        """`spec.runtimeCluster`."""
        return self.garden.spec.runtime_cluster

    @property
    def virtual(self) -> VirtualCluster:
        """`spec.virtualCluster`."""
        return self.garden.spec.virtual_cluster

    @property
    def api_server(self) -> KubeApiServer:
        """`spec.virtualCluster.kubernetes.kubeAPIServer`."""
        return self.virtual.kubernetes.kube_api_server

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains of the virtual cluster, the main one first."""
        return tuple(domain.name for domain in self.virtual.dns.domains)

    @property
    def api_hosts(self) -> tuple[str, ...]:
        """The names of the virtual cluster's API server, those of the main domain first."""
        return tuple(f"{name}.{domain}" for domain in self.domains for name in ("api", "gardener"))

    @property
    def ingress_domain(self) -> str:
        """The first domain for the hosts of the runtime cluster's components."""
        return self.runtime.ingress.domains[0].name

    @property
    def is_highly_available(self) -> bool:
        """Whether the control plane survives the loss of a node or a zone."""
        return self.virtual.control_plane.high_availability is not None

    @property
    def has_several_zones(self) -> bool:
        """Whether components can be spread over zones."""
        return len(self.runtime.provider.zones) >= SEVERAL

    @property
    def traffic_distribution(self) -> str:
        """The value that Services of the runtime cluster set to keep requests in their zone."""
        renamed = Version.parse(self.runtime_version) >= _SAME_ZONE
        return "PreferSameZone" if renamed else "PreferClose"

    @property
    def version(self) -> Version:
        """The Kubernetes version of the virtual cluster."""
        return Version.parse(self.virtual.kubernetes.version)

    @property
    def rotation(self) -> CredentialsRotation:
        """`status.credentials.rotation`."""
        status = self.garden.status
        credentials = status.credentials if status else None
        return (credentials.rotation if credentials else None) or CredentialsRotation()

    def referenced(self, kind: str, name: str) -> dict[str, bytes]:
        """Return the content of a Secret or ConfigMap that the Garden names.

        Raises:
            ReferenceMissing: It does not exist.
        """
        found = self.references.get((kind, Key(NAMESPACE, name)))
        if found is None:
            raise ReferenceMissing(kind, NAMESPACE, name)
        return content(found)

    def referenced_value(self, kind: str, name: str, key: str) -> bytes:
        """Return one value of a Secret or ConfigMap that the Garden names.

        Raises:
            ReferenceMissing: It does not exist, or does not have the key.
        """
        values = self.referenced(kind, name)
        if key not in values:
            raise ReferenceMissing(kind, NAMESPACE, name, key)
        return values[key]

    def image(self, name: str) -> str:
        """Return the reference of an image for the runtime cluster.

        Raises:
            ImageNotFound: The image vector does not have it.
        """
        return self.images.find(name, runtime_version=self.runtime_version)

    def image_version(self, name: str) -> str:
        """Return the version of an image, such as `v3.1.0`; empty if nothing names it.

        Raises:
            ImageNotFound: The image vector does not have it.
        """
        return self.images.version_of(name, runtime_version=self.runtime_version)

    def kubernetes_image(self, name: str) -> str:
        """Return the reference of an image that has the virtual cluster's version.

        Raises:
            ImageNotFound: The image vector does not have it.
        """
        return self.images.find(
            name,
            version=self.virtual.kubernetes.version,
            runtime_version=self.runtime_version,
        )

    def gardener_image(self, name: str) -> str:
        """Return the reference of one of Gardener's own images, whose tag is its version.

        Raises:
            ImageNotFound: The image vector does not have it.
        """
        return self.images.find(
            name, version=self.gardener_version, runtime_version=self.runtime_version
        )

    def with_credentials(self, credentials: Credentials) -> Self:
        """Return the same landscape with these credentials."""
        return replace(self, credentials=credentials)
