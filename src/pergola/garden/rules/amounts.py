"""Rules about quantities and numbers in a Garden."""

from collections.abc import Generator, Iterator, Mapping
from decimal import Decimal
from typing import Final

from pergola.api.field_errors import Cause, invalid, required, unsupported
from pergola.api.operator_v1alpha1.facets import Autoscaling
from pergola.kube.quantities import QuantityError, parse_quantity

_SCALED: Final = ("cpu", "memory")
_NOT_NEGATIVE: Final = "must be greater than or equal to 0"


def check_autoscaling(
    autoscaling: Autoscaling | None, least: Mapping[str, str], path: str
) -> Iterator[Cause]:
    """Yield the findings about the lower limits of a component's autoscaler.

    Args:
        least: The lowest amounts with which the component works.
    """
    if autoscaling is None:
        return
    at = f"{path}.minAllowed"
    if not autoscaling.min_allowed:
        yield required(at, "must provide minAllowed")
    for name, quantity in autoscaling.min_allowed.items():
        amount = yield from check_scaled(name, quantity, f"{at}.{name}")
        if amount is not None and name in least and amount < parse_quantity(least[name]):
            yield invalid(f"{at}.{name}", quantity, f"value must be bigger than >= {least[name]}")


def check_scaled(
    name: str, quantity: int | str, path: str
) -> Generator[Cause, None, Decimal | None]:
    """Yield the findings about a limit of an autoscaler, and return it; None if it is invalid."""
    if name not in _SCALED:
        yield unsupported(path, name, _SCALED)
    return (yield from check_quantity(quantity, path))


def check_quantity(quantity: int | str, path: str) -> Generator[Cause, None, Decimal | None]:
    """Yield the findings about a quantity, and return it; None if it is invalid."""
    try:
        amount = parse_quantity(quantity)
    except QuantityError:
        yield invalid(path, quantity, "must be a quantity such as 500m, 2 or 1Gi")
        return None
    if amount < 0:
        yield invalid(path, quantity, _NOT_NEGATIVE)
    return amount


def check_not_negative(value: int | None, path: str) -> Iterator[Cause]:
    """Yield a finding if a number is negative."""
    if value is not None and value < 0:
        yield invalid(path, value, _NOT_NEGATIVE)
