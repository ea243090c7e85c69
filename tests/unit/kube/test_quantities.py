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

SUFFIXES = ["", *"numkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "e-3", "E6", "e+1"]


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
def test_parts_below_a_nano_are_rounded_away_from_zero(quantity: str) -> None:
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
def test_what_is_no_quantity_is_refused(quantity: str | float) -> None:
    with pytest.raises(QuantityError, match="is no quantity"):
        parse_quantity(quantity)


def test_a_boolean_is_no_number_even_after_that_number_was_read() -> None:
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
def test_equal_amounts_are_equal_however_they_are_written(
    one: str | float, other: str | float
) -> None:
    assert equal_quantities(one, other)
    assert equal_quantities(other, one)


@pytest.mark.parametrize(("one", "other"), [("1G", "1Gi"), ("1", "1m"), ("1", "-1")])
def test_other_amounts_are_not_equal(one: str, other: str) -> None:
    assert not equal_quantities(one, other)


@pytest.mark.parametrize(
    ("quantity", "canonical"),
    [
        ("0", "0"),
        ("-0", "0"),
        ("0Gi", "0"),
        ("1.5Gi", "1536Mi"),
        ("1024Ki", "1Mi"),
        ("1000000Ki", "1000000Ki"),
        ("1024Pi", "1Ei"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("0.0001Ki", "102400u"),
        ("3.14159Gi", "3373256576860160u"),
        ("100Ei", "9223372036854775807"),
        ("1024", "1024"),
        ("1000", "1k"),
        ("2000", "2k"),
        ("1.5k", "1500"),
        ("12345000", "12345k"),
        ("1000000000n", "1"),
        ("1500m", "1500m"),
        ("0.1m", "100u"),
        ("1.1n", "2n"),
        ("1.50", "1500m"),
        ("1e3", "1e3"),
        ("1e5", "100e3"),
        ("1e1", "10"),
        ("1e-2", "10e-3"),
        ("1e20", "100e18"),
        ("1e100", "10e99"),
        ("99999999999999999999E", "99999999999999999999E"),
        (2000, "2k"),
        (0.25, "250m"),
    ],
)
def test_quantities_are_written_as_kubernetes_writes_them(
    quantity: str | float, canonical: str
) -> None:
    assert canonical_quantity(quantity) == canonical


@given(
    st.decimals(-(10**12), 10**12, allow_nan=False, allow_infinity=False, places=6),
    st.sampled_from(SUFFIXES),
)
def test_the_canonical_form_is_the_same_amount_and_stays_as_it_is(
    number: Decimal, suffix: str
) -> None:
    quantity = f"{number:f}{suffix}"
    canonical = canonical_quantity(quantity)
    assert equal_quantities(quantity, canonical)
    assert canonical_quantity(canonical) == canonical
    assert "." not in canonical


@given(st.text("0123456789.eEinumkKMGTP+-", max_size=12) | st.text(max_size=4))
def test_no_text_causes_another_error(text: str) -> None:
    try:
        amount = parse_quantity(text)
    except QuantityError:
        return
    assert amount.is_finite()
