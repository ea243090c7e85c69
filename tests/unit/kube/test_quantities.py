from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.kube.quantities import (
    QuantityError,
    canonical_quantity,
    equal_quantities,
    parse_quantity,
)

_CAP = str(2**63 - 1)


@pytest.mark.parametrize(
    ("quantity", "amount"),
    [
        ("0", "0"),
        ("100m", "0.1"),
        ("1.5Gi", "1610612736"),
        ("1.5G", "1500000000"),
        ("1k", "1000"),
        ("1E", "1000000000000000000"),
        ("1E3", "1000"),
        ("2e-3", "0.002"),
        ("1.", "1"),
        (".5", "0.5"),
        ("-1Ki", "-1024"),
        ("+1u", "0.000001"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        (3, "3"),
        (0.1, "0.1"),
        (1e22, "1e22"),
    ],
)
def test_quantities_are_exact(quantity: str | float, amount: str) -> None:
    assert parse_quantity(quantity) == Decimal(amount)


@pytest.mark.parametrize("quantity", ["1n", "0.1n", "0.0000000001", "1e-10", "1e-300"])
def test_fractions_below_a_nano_are_rounded_away_from_zero(quantity: str) -> None:
    assert parse_quantity(quantity) == Decimal("1e-9")
    assert parse_quantity(f"-{quantity}") == Decimal("-1e-9")


@pytest.mark.parametrize(
    "quantity",
    [
        *("", " 1", "1 ", "1K", "1ki", "1e", "1e-", "1ee3", "1e1.5", "1Zi", "1Gii", "1mm", "1Mi1"),
        *("1_000", "0x10", "inf", "NaN", "Gi", "m", ".", "+", "--1", "1,5", "\uff11", "1\n"),
        *("1e999999999999", "1e-999999999999", "9" * 101, True, False, float("inf"), float("nan")),
    ],
)
def test_an_invalid_quantity_is_refused(quantity: str | float) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        parse_quantity(quantity)


def test_a_boolean_is_not_a_number_even_after_that_number_was_read() -> None:
    assert parse_quantity(1) == parse_quantity(1.0) == 1
    with pytest.raises(QuantityError):
        parse_quantity(True)  # noqa: FBT003 - as JSON may have it


def test_an_error_shows_only_the_start_of_a_long_text() -> None:
    with pytest.raises(QuantityError) as raised:
        parse_quantity("x" * 10_000)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "1000m"), ("1Gi", "1024Mi"), ("1.0", 1), ("1e3", "1k"), ("0.5", "500m"), ("8Ei", "9Ei")],
)
def test_equal_amounts_in_different_notations_are_equal(
    one: str | float, other: str | float
) -> None:
    assert equal_quantities(one, other)
    assert equal_quantities(other, one)


@pytest.mark.parametrize(("one", "other"), [("1G", "1Gi"), ("1", "1m"), ("1", "-1")])
def test_different_amounts_are_not_equal(one: str, other: str) -> None:
    assert not equal_quantities(one, other)


@pytest.mark.thorough("fuzz")
@given(st.text("0123456789.eEinumkKMGTP+-", max_size=12) | st.text(max_size=4))
def test_no_text_raises_an_unexpected_error(text: str) -> None:
    try:
        amount = parse_quantity(text)
    except QuantityError:
        return
    assert amount.is_finite()


@pytest.mark.parametrize(
    ("quantity", "canonical"),
    [
        *(("0.5Gi", "512Mi"), ("1.5Gi", "1536Mi"), ("1024Ki", "1Mi"), ("1023Ki", "1023Ki")),
        *(("1.1Ki", "1126400m"), ("0.3Ki", "307200m"), ("-1.5Gi", "-1536Mi"), ("16Ei", _CAP)),
        *((2, "2"), (2.5, "2500m"), ("1.5", "1500m"), ("0.001", "1m"), ("1000000", "1M")),
        *(("0", "0"), ("0Gi", "0"), ("1e3", "1e3"), ("1E4", "10e3"), ("1.2e-3", "1200e-6")),
        *(("10E", "10E"), ("2.5E", "2500P"), ("1000Mi", "1000Mi"), ("0.1n", "1n")),
        # Kubernetes does not rewrite these, because no zero has to move
        *(("+5", "+5"), ("2249.585", "2249.585"), ("+3Gi", "+3Gi"), ("+8Gi", "8Gi")),
        *(("+30260Ti", "30260Ti"), ("0.125", "125m"), ("1290.000", "1290")),
    ],
)
def test_quantities_are_written_as_in_kubernetes(quantity: str | float, canonical: str) -> None:
    assert canonical_quantity(quantity) == canonical


@given(
    st.from_regex(r"[+-]?[0-9]{1,12}(\.[0-9]{1,9})?([KMGTP]i|[numkMGTP]|e[0-9])?", fullmatch=True)
)
def test_the_canonical_form_is_the_same_amount(quantity: str) -> None:
    canonical = canonical_quantity(quantity)

    assert equal_quantities(canonical, quantity)
    assert canonical_quantity(canonical) == canonical
