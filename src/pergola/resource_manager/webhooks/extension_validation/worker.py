"""Worker (spec 12 §15.6)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, invalid, required, unsupported
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.kube.quantities import QuantityError, parse_quantity
from pergola.resource_manager.webhooks.extension_validation.findings import text_at
from pergola.resource_manager.webhooks.extension_validation.simple_kinds import (
    Profile,
    missing,
)

_ARCHITECTURES: Final = ("amd64", "arm64")
_NEEDED: Final = ("name", "machineType", "machineImage.name", "machineImage.version")
_COUNTABLE: Final = frozenset(
    {
        *("pods", "services", "replicationcontrollers", "resourcequotas", "secrets"),
        *("configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
    }
)


def check_worker(obj: JsonObject, profile: Profile) -> Iterator[Cause]:
    """Yield findings about a Worker."""
    spec = map_at(obj, "spec")
    yield from missing(spec, ("type", "region", "secretRef.name"))
    for index, pool in enumerate(maps_at(spec, "pools")):
        yield from _pool(pool, f"spec.pools[{index}]", profile)


def _pool(pool: JsonObject, path: str, profile: Profile) -> Iterator[Cause]:
    for name in _NEEDED:
        if not text_at(pool, name):
            yield required(f"{path}.{name}")
    if profile == "strict" and not pool.get("userData"):
        yield required(f"{path}.userData")
    architecture = pool.get("architecture")
    if architecture is not None and architecture not in _ARCHITECTURES:
        yield unsupported(f"{path}.architecture", architecture, _ARCHITECTURES)
    for name, amount in map_at(pool, "nodeTemplate", "capacity").items():
        yield from _capacity(name, amount, f"{path}.nodeTemplate.capacity[{name}]")


def _capacity(name: str, amount: object, path: str) -> Iterator[Cause]:
    text = amount if isinstance(amount, str | int | float) else ""
    try:
        quantity = parse_quantity(text)
    except QuantityError as error:
        yield invalid(path, str(amount), str(error))
        return
    if quantity < 0:
        yield invalid(path, str(amount), "must be greater than or equal to 0")
    elif _is_counted(name) and quantity != int(quantity):
        yield invalid(path, str(amount), "must be an integer")


def _is_counted(resource: str) -> bool:
    """Return whether a resource has integer amounts: pods, and resources of other domains."""
    domain = resource.partition("/")[0] if "/" in resource else ""
    return resource in _COUNTABLE or bool(domain and not domain.endswith("kubernetes.io"))
