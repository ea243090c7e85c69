"""`extensions.gardener.cloud/v1alpha1`: the Bastion (spec 30 §10.1, spec 12 §15)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final

from msgspec import Meta, field

from pergola.api import marks
from pergola.api.extensions_v1alpha1 import API_VERSION, GROUP, VERSION, ExtensionStatus
from pergola.api.field_errors import IMMUTABLE
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.schema.crd import crd
from pergola.api.schema.declare import AGE, ATOMIC_LIST, INT32, Column, Object, Value, kind, rule

BASTION: Final = GroupVersionKind(GROUP, VERSION, "Bastion")

_STAYS: Final = rule("self == oldSelf", "Value is immutable")
_QUALIFIED: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
# Same message as the webhook.
_FROZEN: Final = rule("self == oldSelf", IMMUTABLE)


class IpBlock(Value):
    """A range of addresses."""

    cidr: str
    """The range, such as `192.0.2.0/24`."""
    except_: Annotated[list[str], ATOMIC_LIST] = field(name="except", default_factory=list)
    """Ranges within it to exclude; not every provider supports this."""


class BastionIngressPolicy(Value):
    """A source from which a bastion can be reached."""

    ip_block: IpBlock
    """The addresses that may connect."""


class BastionSpec(Value):
    """The desired state of a host for SSH access to nodes."""

    type: Annotated[str, _FROZEN]
    """The provider that creates it, such as `aws`; immutable."""
    user_data: Annotated[bytes, _FROZEN]
    """The script that the host runs at startup, which authorizes the SSH key; immutable."""
    ingress: list[BastionIngressPolicy]
    """The sources from which it can be reached."""
    provider_config: JsonObject | None = None
    """The provider's configuration, with its own `apiVersion` and `kind`."""
    class_: Annotated[str, _STAYS] | None = field(name="class", default=None)
    """The kind of cluster that the extension serves: `shoot` (the default), `seed` or `garden`."""


class PortStatus(Value):
    """A port of a load balancer."""

    port: Annotated[int, INT32]
    """The number of the port."""
    protocol: str
    """The protocol: `TCP`, `UDP` or `SCTP`."""
    error: Annotated[str, Meta(max_length=316, pattern=_QUALIFIED)]
    """The reason why the port is not served, as a word or `domain/Word`."""


class BastionEndpoint(Value):
    """The address of a bastion, in the form of a load balancer's status."""

    ip: str | None = None
    """The IP address."""
    hostname: str | None = None
    """The DNS name."""
    ip_mode: str | None = None
    """How the address is served: `VIP` or `Proxy`."""
    ports: Annotated[list[PortStatus], ATOMIC_LIST] = []
    """The ports that are served."""


class BastionStatus(ExtensionStatus):
    """The status of a Bastion."""

    ingress: BastionEndpoint | None = None
    """The address of the bastion; absent until it is reachable."""


@kind(
    API_VERSION,
    status=True,
    labels={marks.DELETION_PROTECTED: "true"},
    columns=(
        Column("IP", ".status.ingress.ip"),
        Column("Hostname", ".status.ingress.hostname"),
        AGE,
    ),
)
class Bastion(Object):
    """A temporary host for SSH access to the nodes of a Shoot."""

    spec: BastionSpec
    """The desired state of the host."""
    status: BastionStatus | None = None
    """The observed state, written by the extension."""


def bastion_crd() -> JsonObject:
    """Return the CustomResourceDefinition of Bastions."""
    return crd(Bastion)
