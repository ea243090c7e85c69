from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, field

from pergola.api.objects import JsonObject
from pergola.api.schema import Column, Object, SchemaError, Value, crd, kind, schema_of
from pergola.api.schema import declare as d
from pergola.api.schema.duration import Duration


class Colour(Enum):
    RED = "Red"
    BLUE = "Blue"


class Part(Value):
    """A part.

    Later paragraphs are for readers of the code.
    """

    name: str
    """Its name."""
    size: int | None = None


class Everything(Value):
    flag: bool = False
    count: int = 0
    small: Annotated[int, d.INT32] = 0
    share: Annotated[float, Meta(gt=0, le=1)] = 0.5
    text: Annotated[str, Meta(min_length=1, max_length=9, pattern="^a")] = "a"
    when: d.Timestamp | None = None
    every: Duration | None = None
    colour: Colour = Colour.RED
    mode: Literal["On", "Off"] = "On"
    level: Literal[1, 2] = 1
    port: int | str = 80
    parts: Annotated[list[Part], d.keyed_by("name")] = field(default_factory=list)
    names: Annotated[list[str], d.SET, Meta(max_length=3)] = field(default_factory=list)
    labels: Annotated[dict[str, str], d.ATOMIC] = field(default_factory=dict)
    anything: dict[str, Any] = field(default_factory=dict)
    whole: Annotated[JsonObject, d.EMBEDDED] = field(default_factory=dict)
    fixed: Annotated[str | None, d.IMMUTABLE] = None
    hollow: Annotated[str | None, d.NULLABLE] = None
    given: Annotated[str, d.default("x")] = "x"
    part: Part | None = None
    """The best part."""
    raw: Any = None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("flag", {"type": "boolean"}),
        ("count", {"type": "integer", "format": "int64"}),
        ("small", {"type": "integer", "format": "int32"}),
        (
            "share",
            {
                "type": "number",
                "format": "double",
                "minimum": 0,
                "exclusiveMinimum": True,
                "maximum": 1,
            },
        ),
        ("text", {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a"}),
        ("when", {"type": "string", "format": "date-time"}),
        ("every", {"type": "string", "format": "duration"}),
        ("colour", {"type": "string", "enum": ["Red", "Blue"]}),
        ("mode", {"type": "string", "enum": ["Off", "On"]}),
        ("level", {"type": "integer", "enum": [1, 2]}),
        (
            "port",
            {
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "x-kubernetes-int-or-string": True,
            },
        ),
        (
            "names",
            {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": 3,
                "x-kubernetes-list-type": "set",
            },
        ),
        (
            "labels",
            {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "x-kubernetes-map-type": "atomic",
            },
        ),
        ("anything", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (
            "whole",
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
        ),
        (
            "fixed",
            {
                "type": "string",
                "x-kubernetes-validations": [
                    {"rule": "self == oldSelf", "message": "the field is immutable"}
                ],
            },
        ),
        ("hollow", {"type": "string", "nullable": True}),
        ("given", {"type": "string", "default": "x"}),
        ("raw", {"x-kubernetes-preserve-unknown-fields": True}),
    ],
)
def test_a_type_becomes_its_schema(name: str, expected: JsonObject) -> None:
    assert schema_of(Everything)["properties"][name] == expected


def test_a_struct_lists_required_fields_and_describes_all() -> None:
    assert schema_of(Part) == {
        "description": "A part.",
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "description": "Its name."},
            "size": {"type": "integer", "format": "int64"},
        },
    }


def test_a_list_keyed_by_a_field_is_of_type_map() -> None:
    parts = schema_of(Everything)["properties"]["parts"]

    assert parts["x-kubernetes-list-type"] == "map"
    assert parts["x-kubernetes-list-map-keys"] == ["name"]
    assert parts["items"] == schema_of(Part)


def test_the_description_of_a_field_overrides_that_of_its_type() -> None:
    assert schema_of(Everything)["properties"]["part"]["description"] == "The best part."


def test_required_is_left_out_if_all_fields_have_defaults() -> None:
    assert "required" not in schema_of(Everything)


class Loop(Value):
    again: "Loop | None" = None


class Either(Value):
    one: bool | list[str]


class Unknown(Value):
    number: complex


@pytest.mark.parametrize("cls", [Loop, Either, Unknown])
def test_types_without_a_structural_schema_are_refused(cls: type[Value]) -> None:
    with pytest.raises(SchemaError):
        schema_of(cls)


@kind(
    "example.org/v2",
    plural="things",
    short=("th", "tg"),
    categories=("all",),
    namespaced=False,
    columns=(Column("Size", ".spec.size", "integer"),),
    labels={"a": "b"},
)
class Thing(Object):
    """Some thing."""

    spec: Part


def test_a_declared_kind_becomes_a_crd() -> None:
    assert crd(Thing) == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org", "labels": {"a": "b"}},
        "spec": {
            "group": "example.org",
            "scope": "Cluster",
            "names": {
                "kind": "Thing",
                "listKind": "ThingList",
                "plural": "things",
                "singular": "thing",
                "shortNames": ["th", "tg"],
                "categories": ["all"],
            },
            "versions": [
                {
                    "name": "v2",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema_of(Thing)},
                    "additionalPrinterColumns": [
                        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
                    ],
                }
            ],
        },
    }
    assert schema_of(Thing)["required"] == ["spec"]
    assert schema_of(Thing)["properties"]["metadata"] == {"type": "object"}


@pytest.mark.parametrize(
    ("name", "plural"),
    [
        ("Policy", "policies"),
        ("Gateway", "gateways"),
        ("Ingress", "ingresses"),
        ("Mailbox", "mailboxes"),
        ("Switch", "switches"),
        ("Greeting", "greetings"),
    ],
)
def test_the_plural_of_a_kind_is_english(name: str, plural: str) -> None:
    declared: Any = type(name, (Object,), {})
    assert kind("example.org/v1")(declared).resource.plural == plural


def test_one_text_is_no_list_of_names() -> None:
    with pytest.raises(TypeError, match="short is a tuple of names, not the text 'st'"):
        kind("example.org/v1", short="st")  # type: ignore[arg-type]


def test_a_kind_has_an_api_version_and_a_default_plural() -> None:
    @kind("example.org/v1")
    class Widget(Object):
        """A widget."""

    assert Widget.resource.api_version == "example.org/v1"
    assert Widget.resource.plural == "widgets"
