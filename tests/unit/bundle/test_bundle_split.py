import random

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.bundle.errors import ObjectTooLarge
from pergola.bundle.registry import Document
from pergola.bundle.split import PART_LIMIT, SECRET_LIMIT, split


def documents(*sizes: int) -> list[Document]:
    """Draw documents of random bytes, which do not compress."""
    source = random.Random(7)  # noqa: S311 - the same every time
    return [
        Document(
            f"ConfigMap ns/{number}",
            f"n: {number} ".encode() + source.randbytes(size).hex().encode() + b"\n",
        )
        for number, size in enumerate(sizes)
    ]


def test_content_that_fits_is_not_split() -> None:
    assert len(split(documents(100, 100), part_limit=100_000)) == 1
    assert split([]) == []


@given(st.lists(st.integers(0, 600), max_size=12), st.integers(900, 2000))
def test_parts_contain_everything_in_order_within_the_limit(sizes: list[int], limit: int) -> None:
    desired = documents(*sizes)
    parts = split(desired, part_limit=limit, quality=1)
    assert all(len(part) <= limit for part in parts)
    together = b"---\n".join(brotli.decompress(part) for part in parts)
    assert together == b"---\n".join(document.text for document in desired)


def test_parts_are_about_equally_large() -> None:
    parts = split(documents(*[300] * 8), part_limit=1500)
    assert len(parts) == 2
    assert abs(len(parts[0]) - len(parts[1])) < 50


def test_a_large_document_gets_a_separate_part() -> None:
    first, second = split(documents(1000, 50, 50), part_limit=900)
    assert brotli.decompress(first) == documents(1000)[0].text
    assert len(second) < len(first)


def test_an_object_that_cannot_fit_is_reported() -> None:
    with pytest.raises(ObjectTooLarge, match=r"ConfigMap ns/2 has 4006 bytes, compressed 2\d{3}, "):
        split(documents(10, 1200, 2000, 10), part_limit=500, secret_limit=1000)


def test_a_part_of_many_objects_stays_below_a_megabyte_as_base64() -> None:
    assert PART_LIMIT * 4 / 3 <= 1_000_000
    assert SECRET_LIMIT == 1024 * 1024
