"""Facets and small types that several parts of the operator's kinds share."""

from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from pergola.api.core_v1 import LocalObjectReference
from pergola.api.schema.declare import ATOMIC, INT32, Value
from pergola.api.schema.duration import Duration
from pergola.api.schema.quantity import ResourceList

NOT_EMPTY: Final = Meta(min_length=1)

Int32: TypeAlias = Annotated[int, INT32]
LocalReference: TypeAlias = Annotated[LocalObjectReference, ATOMIC]
LogLevel: TypeAlias = Literal["info", "debug", "error"]
PositiveDuration: TypeAlias = Annotated[
    Duration,
    Meta(extra_json_schema={"pattern": r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$"}),
]
"""A duration without a sign and with explicit units."""


class DnsDomain(Value):
    """A domain, and the DNS provider of its records."""

    name: Annotated[str, NOT_EMPTY]
    """The name of the domain."""
    provider: str | None = None
    """The name of the DNS provider that manages its records."""


class Autoscaling(Value):
    """The lower limits of a component's vertical autoscaling."""

    min_allowed: ResourceList
    """The lowest requests of CPU and memory."""
