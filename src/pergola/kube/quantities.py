"""Resource quantities of Kubernetes: `100m`, `1.5Gi`, `2e3`.

Kubernetes counts in billionths and rounds smaller fractions away from zero, so that no request
becomes smaller than written.
"""

import re
from decimal import ROUND_UP, Context, Decimal
from functools import lru_cache
from typing import Final

from pergola.kube.errors import KubeError

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0} | {
    suffix: 3 * power for power, suffix in enumerate("kMGTPE", 1)
}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_FACTORS: Final = (
    {suffix: Decimal(1).scaleb(exponent) for suffix, exponent in _DECIMAL.items()}
) | {suffix: Decimal(1024**power) for power, suffix in enumerate(_BINARY) if power}
_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_KIBI: Final = 1024
_QUANTITY: Final = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]+))?"
)
# Numbers with so many digits are surely less than 2^63: Kubernetes does not rewrite all of them.
_FAST_DIGITS: Final = 18
_FAST_BINARY: Final = 15
_NANO: Final = Decimal("1e-9")
# Kubernetes caps amounts with a binary suffix at this value
_LARGEST_BINARY: Final = Decimal(2**63 - 1)
_LONGEST: Final = 100
_LARGEST_EXPONENT: Final = 300
_EXACT: Final = Context(prec=1000, rounding=ROUND_UP)


class QuantityError(KubeError):
    """A value is not a quantity; the text quotes it."""

    def __init__(self, quantity: object) -> None:
        text = str(quantity)
        shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
        super().__init__(f'"{shown}" is not a quantity; write for example 500m, 2 or 1Gi')


@lru_cache(maxsize=4096, typed=True)
def parse_quantity(quantity: str | float) -> Decimal:
    """Return the exact amount: `100m` → 0.1. JSON numbers are also quantities.

    Raises:
        QuantityError: the text is not a quantity, or has more than 100 characters.
    """
    return _parse(quantity)


def equal_quantities(one: str | float, other: str | float) -> bool:
    """Return whether two quantities are the same amount: `1` and `1000m` are.

    Raises:
        QuantityError: one of them is not a quantity.
    """
    return parse_quantity(one) == parse_quantity(other)


def canonical_quantity(quantity: str | float) -> str:
    """Return a quantity as Kubernetes writes it: `0.5Gi` → `512Mi`, `1.5` → `1500m`.

    Raises:
        QuantityError: see `parse_quantity`.
    """
    amount, text = parse_quantity(quantity), str(quantity)
    if _is_kept(text):
        return text
    if text.endswith("i") and amount == int(amount) and abs(amount) >= _KIBI:
        number, power = int(amount), 0
        while number % _KIBI == 0:
            number, power = number // _KIBI, power + 1
        return f"{number}{_BINARY[power]}"
    if not amount:
        return "0"
    exponent = int(amount.normalize(_EXACT).as_tuple().exponent)
    exponent -= exponent % 3
    if _has_exponent(text):
        suffix = f"e{exponent}" if exponent else ""
    else:
        exponent = min(exponent, _DECIMAL["E"])
        suffix = _SUFFIXES[exponent]
    return f"{int(amount.scaleb(-exponent, _EXACT))}{suffix}"


def _is_kept(text: str) -> bool:
    """Return whether Kubernetes keeps the text as it is, even with a sign or a fraction."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return False
    whole, _, fraction = match[1].lstrip("+-").partition(".")
    digits, suffix = (whole.lstrip("0") or "0") + fraction, match[2] or ""
    if suffix in _BINARY[1:]:
        is_short = len(digits) + 3 * _BINARY.index(suffix) < _FAST_BINARY
        return is_short and not fraction and int(digits) % 8 != 0
    scale = int(match[3] or _DECIMAL[suffix]) - len(fraction)
    is_short = len(digits) <= _FAST_DIGITS and scale >= _DECIMAL["n"]
    return is_short and scale % 3 == 0 and digits[0] != "0" and not digits.endswith("000")


def _has_exponent(text: str) -> bool:
    match = _QUANTITY.fullmatch(text)
    return match is not None and match[3] is not None


def _parse(quantity: str | float) -> Decimal:
    text = quantity if isinstance(quantity, str) else repr(quantity)
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise QuantityError(quantity)
    number, suffix, exponent = Decimal(match[1]), match[2] or "", match[3]
    if exponent is None:
        amount = _EXACT.multiply(number, _FACTORS[suffix])
    elif abs(int(exponent)) <= _LARGEST_EXPONENT:
        amount = _EXACT.scaleb(number, int(exponent))
    else:
        raise QuantityError(quantity)
    if suffix in _BINARY[1:]:
        amount = max(min(amount, _LARGEST_BINARY), -_LARGEST_BINARY)
    return _rounded(amount)


def _rounded(amount: Decimal) -> Decimal:
    exponent = amount.as_tuple().exponent
    fits = isinstance(exponent, int) and exponent >= -9
    return amount if fits else amount.quantize(_NANO, context=_EXACT)
