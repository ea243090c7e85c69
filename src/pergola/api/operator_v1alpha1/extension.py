"""The Extension, which the operator installs to serve extension resources (spec 21 §13.1)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final

from msgspec import field

from pergola.api import marks
from pergola.api.core_v1 import Condition, LabelSelector
from pergola.api.extensions_v1alpha1 import NamedResourceReference
from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1.facets import LocalReference
from pergola.api.operator_v1alpha1.names import API_VERSION
from pergola.api.schema.crd import crd
from pergola.api.schema.declare import AGE, ATOMIC, Object, Value, condition_column, kind
from pergola.api.schema.duration import Duration

INSTALLED: Final = "Installed"
REQUIRED_RUNTIME: Final = "RequiredRuntime"
REQUIRED_VIRTUAL: Final = "RequiredVirtual"


class OciRepository(Value):
    """A Helm chart in a registry: `ref`, or `repository` with `tag` or `digest`."""

    ref: str | None = None
    """The complete reference to the chart."""
    repository: str | None = None
    """The repository of the chart."""
    tag: str | None = None
    """The tag of the chart."""
    digest: str | None = None
    """The digest of the chart, which takes precedence over the tag."""
    pull_secret_ref: LocalReference | None = None
    """The Secret with the credentials of the registry."""
    ca_bundle_secret_ref: LocalReference | None = None
    """The Secret with the authorities of the registry's certificate under the key `bundle.crt`."""


class Helm(Value):
    """A Helm chart."""

    oci_repository: OciRepository | None = None
    """The chart in a registry."""


class DeploymentSpec(Value):
    """A chart to deploy."""

    helm: Helm | None = None
    """The chart."""


class ExtensionDeployment(DeploymentSpec):
    """The deployment of the extension itself."""

    values: JsonObject | None = None
    """Values of the chart in seeds and self-hosted shoots."""
    runtime_cluster_values: JsonObject | None = None
    """Values of the chart in the runtime cluster."""
    policy: str | None = None
    """The policy of installation in seeds: `OnDemand`, `Always` or `AlwaysExceptNoShoots`."""
    seed_selector: Annotated[LabelSelector, ATOMIC] | None = None
    """The labels of seeds that may install it."""
    inject_garden_kubeconfig: bool | None = None
    """Whether to inject a kubeconfig of the virtual cluster into its pods."""


class AdmissionDeployment(Value):
    """The deployment of the extension's admission component."""

    runtime_cluster: DeploymentSpec | None = None
    """The part in the runtime cluster."""
    virtual_cluster: DeploymentSpec | None = None
    """The part in the virtual cluster."""
    values: JsonObject | None = None
    """Values of both charts."""


class Deployment(Value):
    """The deployment of an extension and its admission component."""

    extension: ExtensionDeployment | None = None
    """The extension itself."""
    admission: AdmissionDeployment | None = None
    """The admission component of the extension."""
    resources: list[NamedResourceReference] = []
    """Secrets and ConfigMaps with data that values may refer to."""


class Lifecycle(Value):
    """The order of operations relative to the kube-apiserver."""

    reconcile: str | None = None
    """The time of reconciliation; `AfterKubeAPIServer` by default."""
    delete: str | None = None
    """The time of deletion; `BeforeKubeAPIServer` by default."""
    migrate: str | None = None
    """The time of migration; `BeforeKubeAPIServer` by default."""


class ExtensionResource(Value):
    """An extension resource that is served."""

    kind: str
    """The kind of the resource, such as `Infrastructure`."""
    type: str
    """The type of the resource, such as `aws`."""
    auto_enable: list[str] = []
    """The clusters that use it by default: `garden`, `seed`, `shoot`."""
    cluster_compatibility: list[str] = []
    """The clusters that can use it: `garden`, `seed`, `shoot`."""
    continuous_endpoint_update: bool | None = None
    """Whether it is notified of changes of the control plane's nodes."""
    lifecycle: Lifecycle | None = None
    """The order of operations relative to the kube-apiserver."""
    primary: bool | None = None
    """Whether it is primarily responsible for the resource, rather than assisting."""
    reconcile_timeout: Duration | None = None
    """The time limit of a reconciliation."""
    workerless_supported: bool | None = None
    """Whether it supports Shoots without workers."""


class ExtensionSpec(Value):
    """The resources and the deployment of an extension."""

    deployment: Deployment | None = None
    """The deployment of an extension and its admission component."""
    resources: list[ExtensionResource] = []
    """The extension resources that it serves."""


class ExtensionStatus(Value):
    """The observed state of an extension."""

    conditions: list[Condition] = []
    """The state of the extension: whether it is installed, required and healthy."""
    observed_generation: int | None = None
    """The generation that the conditions describe."""
    provider_status: JsonObject | None = None
    """The provider's own status, with its own `apiVersion` and `kind`."""


@kind(
    API_VERSION,
    short=("extop",),
    namespaced=False,
    status=True,
    labels={marks.DELETION_PROTECTED: "true"},
    columns=(
        condition_column("Installed", INSTALLED),
        condition_column("Required Runtime", REQUIRED_RUNTIME),
        condition_column("Required Virtual", REQUIRED_VIRTUAL),
        AGE,
    ),
)
class Extension(Object):
    """An extension of Gardener that the operator installs where it is required."""

    spec: ExtensionSpec = field(default_factory=ExtensionSpec)
    """The resources and the deployment of the extension."""
    status: ExtensionStatus | None = None
    """The observed state, written by the operator."""


def extension_crd() -> JsonObject:
    """Return the CustomResourceDefinition of the operator's Extensions."""
    return crd(Extension)
