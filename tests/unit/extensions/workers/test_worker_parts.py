"""The state of machines from another seed, and shares of zones: spec 31 §4.3, §5."""

import base64
import gzip
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, JsonValue
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.workers.distribution import share, share_of_either
from pergola.extensions.workers.inputs import written_configs
from pergola.extensions.workers.restoring import machine_states
from pergola.kube.errors import WrongAnswer


def worker(state: Any) -> JsonObject:
    return {"metadata": {"name": "w", "namespace": "n"}, "status": {"state": state}}


def packed(content: bytes) -> JsonObject:
    return {"state": base64.b64encode(gzip.compress(content)).decode()}


def test_the_state_of_machines_is_read() -> None:
    state = {"machineDeployments": {"a": {"replicas": 2, "machineSets": [{}]}, "b": None}}

    assert machine_states(worker(packed(orjson.dumps(state)))) == {
        "a": {"replicas": 2, "machineSets": [{}]}
    }


@pytest.mark.parametrize(
    "state", [None, {}, {"state": ""}, {"state": None}, packed(b"{}"), packed(b"null")]
)
def test_no_state_is_no_machines(state: Any) -> None:
    assert machine_states(worker(state)) == {}


@pytest.mark.parametrize(
    "state",
    [
        {"state": "no base64!"},
        {"state": "é"},
        {"state": base64.b64encode(b"not compressed").decode()},
        packed(b""),
        packed(b"{"),
        packed(b"[" * 5000),
        packed(b'{"machineDeployments": {"a": {"replicas"'),
        {"state": base64.b64encode(gzip.compress(b'{"machineDeployments": {}}')[:15]).decode()},
    ],
)
def test_a_malformed_state_is_refused_with_its_place(state: Any) -> None:
    with pytest.raises(ExtensionError, match=r"status\.state of Worker n/w is not the state"):
        machine_states(worker(state))


JSON = st.recursive(
    st.none() | st.integers(0, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.binary(max_size=200) | JSON.map(orjson.dumps))
def test_any_state_is_read_or_refused(content: bytes) -> None:
    for state in (packed(content), {"state": base64.b64encode(content).decode()}):
        try:
            machine_states(worker(state))
        except ExtensionError:
            continue


@given(st.integers(0, 10**6), st.integers(1, 50))
def test_shares_add_up(total: int, zones: int) -> None:
    shares = [share(total, zone, zones) for zone in range(zones)]

    assert sum(shares) == total
    assert shares == sorted(shares, reverse=True)
    assert shares[0] - shares[-1] in (0, 1)


def test_percentages_are_weighted_by_the_share_of_a_zone() -> None:
    assert [share_of_either("30%", zone, 3, 6) for zone in range(3)] == ["30%"] * 3
    assert [share_of_either("30%", zone, 3, 4) for zone in range(3)] == ["45%", "23%", "23%"]
    assert [share_of_either(4, zone, 3, 4) for zone in range(3)] == [2, 1, 1]


@pytest.mark.parametrize(
    "value", ["", "%", "30", "-3%", "3.5%", "3%\n", "٣%", None, 1.5, ["1%"], {"1%": 1}]
)
def test_what_is_not_a_percentage_is_refused(value: JsonValue) -> None:
    with pytest.raises(ValueError, match="is neither a number nor a percentage"):
        share_of_either(value, 0, 1, 1)


def test_configs_are_taken_byte_by_byte() -> None:
    answer = (
        b'{"kind":"Worker","metadata":{"generation":3},"spec":{"pools":['
        b'{"name":"a","providerConfig":{"a":"\\u003c", "b":1.0}},'
        b'{"name":"b"},{"providerConfig":null,"name":"c"}]}}'
    )

    generation, configs = written_configs(answer)

    assert generation == 3
    assert configs == {
        "a": b'{"a":"\\u003c", "b":1.0}',
        "b": b"",
        "c": b"",
    }


@pytest.mark.parametrize(
    "answer", [b"", b"<html>", b"null", b"[]", b'{"spec":{"pools":null}}', b'{"metadata":{}}']
)
def test_an_answer_that_is_not_a_worker_is_refused(answer: bytes) -> None:
    with pytest.raises(WrongAnswer, match="is not a Worker"):
        written_configs(answer)
