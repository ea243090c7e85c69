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
    """Names a Secret of any namespace."""

    name: str | None = None
    """The name of the Secret."""
    namespace: str | None = None
    """The namespace of the Secret."""


class InfrastructureSpec(Value):
    """The desired infrastructure of a Shoot; only the provider understands its config."""

    type: Annotated[str, _STAYS]
    """Which provider makes it, such as `aws`; it cannot change."""
    region: Annotated[str, _STAYS]
    """Where it is, as the provider names it; it cannot change."""
    secret_ref: Annotated[SecretReference, ATOMIC]
    """The Secret with the credentials."""
    ssh_public_key: bytes | None = field(name="sshPublicKey", default=None)
    """The key with which nodes can be reached; none if absent."""
    provider_config: JsonObject | None = None
    """The configuration of the provider, with an `apiVersion` and a `kind` of its own."""
    class_: Annotated[str, _STAYS] | None = field(name="class", default=None)
    """Where the extension works: `shoot` if absent or empty, else `seed` or `garden`."""


class InfrastructureNetworking(Value):
    """The ranges that are in use, as far as the infrastructure knows them."""

    pods: list[str] = []
    """Ranges of the addresses of pods."""
    services: list[str] = []
    """Ranges of the addresses of Services."""
    nodes: list[str] = []
    """Ranges of the addresses of nodes."""


class InfrastructureStatus(ExtensionStatus):
    """The status of an Infrastructure."""

    egress_cidrs: list[str] = field(name="egressCIDRs", default_factory=list)
    """The addresses from which the nodes' traffic to the outside comes, as far as they stay."""
    networking: InfrastructureNetworking | None = None
    """The ranges that are in use."""
    nodes_cidr: str | None = field(name="nodesCIDR", default=None)
    """The range of nodes; older callers read it in place of `networking`."""


@kind(
    API_VERSION,
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
    """The network and the identities for the nodes of a Shoot, made by the provider of its type."""

    spec: InfrastructureSpec
    """The desired state of the infrastructure."""
    status: InfrastructureStatus | None = None
    """What the extension has to say."""


def infrastructure_crd() -> JsonObject:
    """Return the CustomResourceDefinition of Infrastructures."""
    return crd(Infrastructure)
