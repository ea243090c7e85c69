"""The description of a future machine for the cluster autoscaler (spec 31 §4.1)."""

from collections.abc import Mapping
from typing import Final

from pergola.api.objects import JsonObject, JsonValue, map_at
from pergola.extensions.workers import Pool
from pergola.kube.quantities import QuantityError, canonical_quantity
from pergola.providers.aws.worker_config import WorkerConfig
from pergola.providers.aws.workers.problems import NO_QUANTITY, plain, unusable

_TEMPLATE: Final = "nodeTemplate"


def node_template(pool: Pool[WorkerConfig], region: str, zone: str) -> JsonObject:
    """Return the template; amounts of the WorkerConfig replace those of the pool.

    Raises:
        Problem: an amount is not a quantity.
    """
    given = map_at(pool.raw, _TEMPLATE)
    own = pool.config.node_template
    capacity = _amounts(given, "capacity", own.capacity if own else {})
    virtual = _amounts(given, "virtualCapacity", own.virtual_capacity if own else {})
    is_given = isinstance(pool.raw.get(_TEMPLATE), dict)
    return {
        "capacity": capacity,
        **({"virtualCapacity": virtual} if virtual else {}),
        "instanceType": pool.machine_type if is_given else "",
        "region": region if is_given else "",
        "zone": zone if is_given else "",
        **({"architecture": pool.architecture} if is_given else {}),
    }


def _amounts(given: JsonObject, name: str, own: Mapping[str, int | str]) -> JsonObject | None:
    """Return amounts as Kubernetes writes them; None if neither side has any."""
    path = f"{_TEMPLATE}.{name}"
    found = {
        key: _amount(value, f"{path}.{plain(key)}") for key, value in map_at(given, name).items()
    }
    found |= {
        key: _amount(value, f"providerConfig.{path}.{plain(key)}") for key, value in own.items()
    }
    return found if found or isinstance(given.get(name), dict) else None


def _amount(value: JsonValue, path: str) -> str:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise unusable(path, value, NO_QUANTITY)
    try:
        return canonical_quantity(value)
    except QuantityError:
        raise unusable(path, value, NO_QUANTITY) from None
