"""Content of Secrets is read with one budget, however it is compressed."""

import tracemalloc

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.bundle.content import (
    Budget,
    BudgetExceeded,
    DecompressionError,
    decode_data,
    decompress,
    is_cheap,
    read_documents,
)
from pergola.kube.yaml import ValueLimit

MIB = 1024 * 1024


def read(key: str, value: bytes, budget: Budget | None = None) -> list[object]:
    return [document.value for document in read_documents(key, value, budget or Budget())]


def test_plain_and_compressed_values_are_read_alike() -> None:
    text = b'a: 1\n---\n{"b": 2}\n'

    assert read("x.yaml", text) == [{"a": 1}, {"b": 2}]
    assert read("x.yaml.br", brotli.compress(text)) == [{"a": 1}, {"b": 2}]
    assert read("x.yaml.br", b"") == []


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".xz", ".bz2", ".lz4", ".zip"])
def test_an_unknown_compression_is_reported(suffix: str) -> None:
    with pytest.raises(DecompressionError, match=rf"compression {suffix} is not supported"):
        read(f"x.yaml{suffix}", b"a: 1")


@pytest.mark.parametrize("value", [b"x", brotli.compress(b"abc" * 99)[:-3]])
def test_a_corrupt_or_truncated_stream_is_an_error(value: bytes) -> None:
    with pytest.raises(DecompressionError):
        decompress(value, Budget())


def test_values_share_one_budget_of_bytes() -> None:
    bomb = brotli.compress(bytes(3_000_000))

    assert len(decompress(bomb, Budget(bytes=3_000_000))) == 3_000_000
    with pytest.raises(BudgetExceeded, match="bytes of content"):
        decompress(bomb, Budget(bytes=2_999_999))
    budget = Budget(bytes=4_000_000)
    decompress(bomb, budget)
    with pytest.raises(BudgetExceeded):
        decompress(bomb, budget)
    with pytest.raises(BudgetExceeded):
        read("plain", bytes(3_000_000), budget)


def test_a_decompression_bomb_is_stopped_at_the_budget() -> None:
    bomb = brotli.compress(bytes(512 * MIB), quality=1)

    tracemalloc.start()
    with pytest.raises(BudgetExceeded):
        decompress(bomb, Budget(bytes=8 * MIB))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 32 * MIB


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"---\n# x\n" * 12, "documents"),
        (b"---\na: b\n" * 11, "documents"),
        (b'{"a": 1}\n' * 11, "documents"),
        (b"---\n@\n" * 4, "broken documents"),
        (b'{"a": [' + b"[]," * 40 + b"[]]}", "values"),
        (b'{"a": "' + b"," * 90 + b'", "b": [' + b"1," * 40 + b"1]}", "values"),
        (b"a: [" + b"[]," * 40 + b"]", "values"),
        (b"a: &a [" + b"1," * 12 + b"1]\nb: *a\nc: *a\n", "values"),
        (b"a: &a {b: {c: {d: {}}}}\n<<: [" + b"*a, " * 9 + b"]\n", "values"),
    ],
)
def test_each_kind_of_oversized_content_is_stopped_at_its_limit(text: bytes, problem: str) -> None:
    budget = Budget(documents=10, errors=3, values=ValueLimit(40))

    with pytest.raises(BudgetExceeded, match=problem):
        read("x", text, budget)


def test_commas_within_strings_do_not_count_as_values() -> None:
    text = b'{"a": "' + b"[,{" * 1000 + b'", "b": "\\",\\",\\""}'

    assert read("x", text, Budget(values=ValueLimit(8))) == [{"a": "[,{" * 1000, "b": '",","'}]


def test_oversized_json_is_refused_before_it_is_parsed() -> None:
    text = b'{"a": [' + b"[]," * (4 * MIB) + b"[]]}"

    tracemalloc.start()
    with pytest.raises(BudgetExceeded, match="values"):
        read("x", text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 4 * len(text)


@pytest.mark.parametrize(
    ("data", "cheap"),
    [
        ({}, True),
        ({"a": b"x" * 1000}, True),
        ({"a": b"x" * 20_000}, False),
        ({"a.br": b"x"}, False),
        ({f"{number}": b"x" * 1000 for number in range(20)}, False),
    ],
)
def test_only_short_plain_text_is_free(data: dict[str, bytes], cheap: bool) -> None:
    assert is_cheap(data) is cheap
    assert is_cheap({"b": b"y"}, data) is cheap


def test_data_that_is_not_base64_is_empty() -> None:
    assert decode_data({"a": "YQ==", "b": "?", "c": 5, "d": "é"}) == {
        "a": b"a",
        "b": b"",
        "c": b"",
        "d": b"",
    }


TEXTS = st.one_of(
    st.binary(max_size=300),
    st.text("{}[]:-,\n'\"ab &*!|>#%@<", max_size=200).map(str.encode),
    st.lists(st.sampled_from([b"---\n", b"a: ", b"&a ", b"*a", b"[", b"{", b'"', b",", b"\n"])).map(
        b"".join
    ),
)


@pytest.mark.thorough("fuzz")
@given(
    text=TEXTS,
    compressed=st.booleans(),
    limits=st.tuples(*[st.integers(0, 30)] * 3),
    size=st.integers(0, 400),
)
def test_nothing_is_read_beyond_the_budget(
    text: bytes, compressed: bool, limits: tuple[int, int, int], size: int
) -> None:
    documents, errors, values = limits
    budget = Budget(size, documents, errors, ValueLimit(values))
    found = []
    key, value = ("x.br", brotli.compress(text, quality=1)) if compressed else ("x", text)
    try:
        for document in read_documents(key, value, budget):
            found.append(document)  # noqa: PERF402 - it ends by an exception
    except BudgetExceeded:
        pass
    else:
        assert len(text) <= size
    assert len(found) <= documents
    assert sum(document.error is not None for document in found) <= errors
    assert sum(_values_in(document.value) for document in found) <= values


def _values_in(value: object) -> int:
    """Count the scalars and containers within a value."""
    if isinstance(value, dict):
        return len(value) + sum(map(_values_in, value.values()))
    if isinstance(value, list):
        return len(value) + sum(map(_values_in, value))
    return 0
