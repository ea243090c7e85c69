"""`dashboard.gardener.cloud/v1alpha1`: terminals in the dashboard (spec 20 §16.6).

terminal-controller-manager serves them; the operator installs their definition.
"""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final, Literal

from msgspec import field

from pergola.api.core_v1 import ObjectReference
from pergola.api.objects import JsonObject
from pergola.api.schema.crd import crd
from pergola.api.schema.declare import (
    ATOMIC,
    NULLABLE,
    Object,
    Timestamp,
    Value,
    keyed_by,
    kind,
)
from pergola.api.schema.quantity import ResourceList

API_VERSION: Final = "dashboard.gardener.cloud/v1alpha1"

_BindingKind = Literal["ClusterRoleBinding", "RoleBinding", ""]
_Reference = Annotated[ObjectReference, ATOMIC]


class ShootRef(Value):
    """A Shoot whose admin kubeconfig is used."""

    name: str
    """The name of the Shoot."""
    namespace: str
    """The namespace of the Shoot."""


class ClusterCredentials(Value):
    """Credentials of a cluster: either of a ServiceAccount or of a Shoot."""

    service_account_ref: _Reference | None = None
    """The ServiceAccount whose token is used."""
    shoot_ref: ShootRef | None = None
    """The Shoot, if the cluster is one."""


class ResourceClaim(Value):
    """A resource that a pod claims for a container."""

    name: str
    """The name of the claim in the pod."""
    request: str | None = None
    """The name of one request of the claim; all of them if absent."""


class Resources(Value):
    """The resources of a container."""

    claims: Annotated[list[ResourceClaim], keyed_by("name")] = []
    """Claims of the pod that the container uses."""
    limits: ResourceList | None = None
    """The limits of the container's resources."""
    requests: ResourceList | None = None
    """The resources that are reserved for the container."""


class TerminalContainer(Value):
    """The container in which a user works."""

    image: str
    """The image, which must have `/bin/cp`."""
    command: list[str] = []
    """The program; the image's own if empty."""
    args: list[str] = []
    """The arguments of the program; the image's own if empty."""
    resources: Resources | None = None
    """The resources of the container."""
    privileged: bool = False
    """Whether the container has all privileges on its node."""


class TerminalPod(Value):
    """The pod in which a user works."""

    container: TerminalContainer | None = None
    """The container of the pod."""
    container_image: str = ""
    """The image of the container if `container` is absent; deprecated."""
    host_network: bool = False
    """Whether the pod shares the network of its node."""
    host_pid: bool = field(name="hostPID", default=False)
    """Whether the pod sees the processes of its node."""
    labels: dict[str, str] = {}
    """Labels of the pod."""
    node_selector: dict[str, str] = {}
    """Labels of nodes on which the pod may run."""
    privileged: bool = False
    """Whether the container is privileged if `container` is absent; deprecated."""


class HostCluster(Value):
    """The cluster where the pod of a terminal runs."""

    credentials: ClusterCredentials
    """The credentials of the cluster."""
    pod: TerminalPod
    """The pod."""
    namespace: str | None = None
    """The namespace of the pod, unless it is temporary."""
    temporary_namespace: bool | None = None
    """Whether the pod gets a namespace that lives as long as the terminal."""


class RoleRef(Value):
    """A role to bind."""

    api_group: str
    """The API group of roles."""
    kind: str
    """`Role` or `ClusterRole`."""
    name: str
    """The name of the role."""


class RoleBinding(Value):
    """A binding of a role to the terminal, for the terminal's lifetime."""

    binding_kind: _BindingKind
    """The kind of the binding."""
    name_suffix: str
    """The suffix of the binding's name, which must be unique."""
    role_ref: Annotated[RoleRef, ATOMIC]
    """The role."""


class ProjectMembership(Value):
    """A Project that the terminal is a member of during its lifetime."""

    project_name: str
    """The name of the Project."""
    roles: list[str]
    """Its roles in the Project."""


class Authorization(Value):
    """The permissions of a terminal in its target."""

    role_bindings: list[RoleBinding] = []
    """Roles of the target."""
    project_memberships: list[ProjectMembership] = []
    """Projects, if the target is the virtual cluster."""


class TargetApiServer(Value):
    """The connection from the pod to the API server of the target."""

    ca_data: Annotated[bytes, NULLABLE] | None = None
    """The authority of the API server, in PEM."""
    server: str = ""
    """The address of the API server, a URL."""
    service_ref: _Reference | None = None
    """The Service of the API server in the host cluster."""


class TargetCluster(Value):
    """The cluster on which a user works."""

    credentials: ClusterCredentials
    """The credentials of the cluster."""
    kubeconfig_context_namespace: str
    """The default namespace of the kubeconfig in the pod."""
    api_server: TargetApiServer | None = None
    """The connection to the API server."""
    api_server_service_ref: _Reference | None = None
    """The Service of the API server; superseded by `apiServer`."""
    authorization: Authorization | None = None
    """The permissions of the terminal."""
    binding_kind: _BindingKind = ""
    """The kind of the binding to `roleName`; superseded by `authorization`."""
    cleanup_project_membership: bool | None = None
    """Whether to remove the ServiceAccount from the Project after its last terminal."""
    namespace: str | None = None
    """The namespace of the terminal's objects, unless it is temporary."""
    role_name: str = ""
    """The ClusterRole of the terminal; superseded by `authorization`."""
    temporary_namespace: bool | None = None
    """Whether the terminal gets a namespace that lives as long as it does."""


class TerminalSpec(Value):
    """The desired state of a terminal."""

    host: HostCluster
    """The cluster where its pod runs."""
    identifier: str
    """Distinguishes terminals of a user."""
    target: TargetCluster
    """The cluster on which the user works."""


class TerminalError(Value):
    """The last problem of a terminal."""

    description: str
    """The problem."""
    last_update_time: Timestamp | None = None
    """The time of its occurrence."""


class TerminalOperation(Value):
    """The current or last operation of a terminal."""

    description: str
    """Details for people."""
    last_update_time: Timestamp
    """The time of the last change of state."""
    state: str
    """`Processing`, `Succeeded` or `Error`."""
    type: str
    """`Reconcile` or `Delete`."""


class TerminalStatus(Value):
    """The state of a terminal."""

    attach_service_account_name: str | None = None
    """The ServiceAccount that the dashboard uses to attach to the pod."""
    last_error: TerminalError | None = None
    """The last problem."""
    last_operation: TerminalOperation | None = None
    """The current or last operation."""
    pod_name: str | None = None
    """The name of the pod."""


@kind(
    API_VERSION,
    status=True,
    labels={
        "app.kubernetes.io/name": "terminal",
        "app.kubernetes.io/component": "controller-manager",
    },
)
class Terminal(Object):
    """A shell on a cluster, for a user of the dashboard."""

    spec: TerminalSpec | None = None
    """The desired state of the terminal."""
    status: TerminalStatus | None = None
    """The state of the terminal."""


def terminal_crd() -> JsonObject:
    """Return the CustomResourceDefinition of Terminals."""
    return crd(Terminal)
