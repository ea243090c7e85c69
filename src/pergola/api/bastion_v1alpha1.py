"""`extensions.gardener.cloud/v1alpha1`: the Bastion (spec 30 §10.1, spec 12 §15)."""

from typing import Annotated, Final

from msgspec import field

from pergola.api import marks
from pergola.api.extensions_v1alpha1 import API_VERSION, GROUP, VERSION, ExtensionStatus
from pergola.api.field_errors import IMMUTABLE
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.schema.crd import crd
from pergola.api.schema.declare import AGE, ATOMIC_LIST, Column, Object, Value, kind, rule

BASTION: Final = GroupVersionKind(GROUP, VERSION, "Bastion")

_STAYS: Final = rule("self == oldSelf", "Value is immutable")
# Same message as the webhook.
_FROZEN: Final = rule("self == oldSelf", IMMUTABLE)


class IpBlock(Value):
    """A range of addresses."""

    cidr: str
    """The range, such as `192.0.2.0/24`."""
    except_: Annotated[list[str], ATOMIC_LIST] = field(name="except", default_factory=list)
    """Ranges within it that are left out; not every provider can do so."""


class BastionIngressPolicy(Value):
    """From where a bastion can be reached."""

    ip_block: IpBlock
    """The addresses that are let in."""


class BastionSpec(Value):
    """The host through which people reach nodes by SSH."""

    type: Annotated[str, _FROZEN]
    """Which provider makes it, such as `aws`; it cannot change."""
    user_data: Annotated[bytes, _FROZEN]
    """What the host runs when it starts, which lets the SSH key in; it cannot change."""
    ingress: list[BastionIngressPolicy]
    """From where it can be reached."""
    provider_config: JsonObject | None = None
    """The configuration of the provider, with an `apiVersion` and a `kind` of its own."""
    class_: Annotated[str, _STAYS] | None = field(name="class", default=None)
    """Where the extension works: `shoot` if absent or empty, else `seed` or `garden`."""


class BastionEndpoint(Value):
    """Where a bastion is reached."""

    ip: str | None = None
    """The address."""
    hostname: str | None = None
    """The name that DNS has for it."""


class BastionStatus(ExtensionStatus):
    """The status of a Bastion."""

    ingress: BastionEndpoint | None = None
    """Where the bastion is reached; absent until it can be."""


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
    """A host through which people get to the nodes of a Shoot by SSH, as long as they need it."""

    spec: BastionSpec
    """The desired state of the host."""
    status: BastionStatus | None = None
    """What the extension has to say."""


def bastion_crd() -> JsonObject:
    """Return the CustomResourceDefinition of Bastions."""
    return crd(Bastion)
