"""Kubernetes quantities: `100m`, `1.5Gi`, `2e3` (the API's resource.Quantity)."""

from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Final

from pergola.kube.errors import KubeError

_BINARY: Final = {f"{prefix}i": Decimal(1024) ** n for n, prefix in enumerate("KMGTPE", 1)}
_DECIMAL: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
}
_NUMBER: Final = frozenset("+-.0123456789eE")


class QuantityError(KubeError):
    """A text that is no quantity; the message quotes it."""


@lru_cache(maxsize=1024)
def parse_quantity(quantity: str | float) -> Decimal:
    """The exact amount: `100m` → 0.1.

    Raises:
        QuantityError: it is no quantity.
    """
    text = str(quantity).strip() if not isinstance(quantity, str) else quantity
    number, factor = text, Decimal(1)
    for suffixes, length in ((_BINARY, 2), (_DECIMAL, 1)):
        if text[-length:] in suffixes:
            number, factor = text[:-length], suffixes[text[-length:]]
            break
    if not number or not set(number) <= _NUMBER:
        raise QuantityError(f'"{text}" is no quantity; write e.g. 500m, 2 or 1Gi')
    try:
        return Decimal(number) * factor
    except InvalidOperation:
        raise QuantityError(f'"{text}" is no quantity; write e.g. 500m, 2 or 1Gi') from None


def equal_quantities(one: str | float, other: str | float) -> bool:
    """Whether two quantities are the same amount: `1` and `1000m` are.

    Raises:
        QuantityError: one of them is no quantity.
    """
    return parse_quantity(one) == parse_quantity(other)
