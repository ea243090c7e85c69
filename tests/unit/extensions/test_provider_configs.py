"""Configs of extensions are read as the originals' decoders in Go read them."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Any

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.schema.declare import Value
from pergola.api.schema.quantity import ResourceList
from pergola.api.schema.read import Malformed
from pergola.extensions.provider_config import read_leniently, read_strict

GVK = GroupVersionKind("example.org", "v1", "Config")


class Part(Value):
    """A part of a config."""

    count: int = 0


class Config(Value):
    """A config."""

    count: int | None = None
    names: list[str] = []
    parts: list[Part] = []
    gates: dict[str, bool] = {}
    amounts: ResourceList = {}


def read(**fields: Any) -> Config:
    return read_strict(Config, fields, GVK)


def problems(**fields: Any) -> list[str]:
    with pytest.raises(Malformed) as caught:
        read(**fields)
    return [finding.path for finding in caught.value.findings]


@pytest.mark.parametrize(
    ("fields", "config"),
    [
        ({"count": None, "names": None}, Config()),
        ({"names": ["a", None], "parts": [None]}, Config(names=["a", ""], parts=[Part()])),
        ({"gates": {"A": None}}, Config(gates={"A": False})),
        ({"amounts": {"cpu": None}}, Config(amounts={"cpu": 0})),
        (
            {"amounts": {"cpu": 0.5, "memory": "1Gi"}},
            Config(amounts={"cpu": "0.5", "memory": "1Gi"}),
        ),
    ],
)
def test_a_null_is_an_absent_field_or_an_empty_entry(fields: JsonObject, config: Config) -> None:
    assert read(**fields) == config
    assert read_leniently(Config, fields, GVK) == config


def test_an_unknown_field_is_refused_even_if_it_is_null() -> None:
    assert problems(unknown=None) == ["spec.providerConfig.unknown"]
    assert read_leniently(Config, {"unknown": None}, GVK) == Config()


def test_an_integer_has_no_decimal_point() -> None:
    """The controllers of the original, which read the config later, would refuse it."""
    assert problems(count=1.0, parts=[{"count": 2.0}]) == [
        "spec.providerConfig.count",
        "spec.providerConfig.parts[0].count",
    ]
    assert read_leniently(Config, {"count": 1.0}, GVK) == Config(count=1)
