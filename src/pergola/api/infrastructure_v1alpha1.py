"""`extensions.gardener.cloud/v1alpha1`: the Infrastructure (spec 30 §2, spec 40 §2)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final

from msgspec import field

from pergola.api import marks
from pergola.api.extensions_v1alpha1 import (
    API_VERSION,
    GROUP,
    VERSION,
    ExtensionStatus,
)
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.schema.crd import crd
from pergola.api.schema.declare import AGE, ATOMIC, Column, Object, Value, kind, rule

INFRASTRUCTURE: Final = GroupVersionKind(GROUP, VERSION, "Infrastructure")

_STAYS: Final = rule("self == oldSelf", "Value is immutable")


class SecretReference(Value):
    """A reference to a Secret in any namespace."""

    name: str | None = None
    """The name of the Secret."""
    namespace: str | None = None
    """The namespace of the Secret."""


class InfrastructureSpec(Value):
    """The desired infrastructure of a Shoot; only the provider understands its config."""

    type: Annotated[str, _STAYS]
    """The provider that creates it, such as `aws`; immutable."""
    region: Annotated[str, _STAYS]
    """The region, as the provider names it; immutable."""
    secret_ref: Annotated[SecretReference, ATOMIC]
    """The Secret with the credentials."""
    ssh_public_key: bytes | None = field(name="sshPublicKey", default=None)
    """The SSH public key for access to nodes; no access if absent."""
    provider_config: JsonObject | None = None
    """The provider's configuration, with its own `apiVersion` and `kind`."""
    class_: Annotated[str, _STAYS] | None = field(name="class", default=None)
    """The kind of cluster that the extension serves: `shoot` (the default), `seed` or `garden`."""


class InfrastructureNetworking(Value):
    """The address ranges in use, as far as the infrastructure knows them."""

    pods: list[str] = []
    """Address ranges of pods."""
    services: list[str] = []
    """Address ranges of Services."""
    nodes: list[str] = []
    """Address ranges of nodes."""


class InfrastructureStatus(ExtensionStatus):
    """The status of an Infrastructure."""

    egress_cidrs: list[str] = field(name="egressCIDRs", default_factory=list)
    """The stable source addresses of the nodes' traffic to the outside."""
    networking: InfrastructureNetworking | None = None
    """The address ranges in use."""
    nodes_cidr: str | None = field(name="nodesCIDR", default=None)
    """The address range of nodes, for older callers that do not read `networking`."""


@kind(
    API_VERSION,
    short=("infra",),
    status=True,
    labels={marks.DELETION_PROTECTED: "true"},
    columns=(
        Column("Type", ".spec.type"),
        Column("Region", ".spec.region"),
        Column("Status", ".status.lastOperation.state"),
        AGE,
    ),
)
class Infrastructure(Object):
    """The network and identities for the nodes of a Shoot, from the provider of its type."""

    spec: InfrastructureSpec
    """The desired state of the infrastructure."""
    status: InfrastructureStatus | None = None
    """The observed state, written by the extension."""


def infrastructure_crd() -> JsonObject:
    """Return the CustomResourceDefinition of Infrastructures."""
    return crd(Infrastructure)
