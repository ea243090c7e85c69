"""Amounts of resources in declared types: their schema, as in Kubernetes' own CRDs."""

from typing import Annotated, Final, TypeAlias

from msgspec import Meta

PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

Quantity: TypeAlias = Annotated[int | str, Meta(extra_json_schema={"pattern": PATTERN})]
"""An amount such as `500m`, `2` or `1Gi`."""

ResourceList: TypeAlias = dict[str, Quantity]
"""Amounts by the name of the resource, such as `cpu` and `memory`."""
