"""Declarations of API types: Structs, with facets that Python types cannot express.

    @kind("example.org/v1", short=("ex",), status=True)
    class Example(Object):
        \"\"\"An example.\"\"\"

        spec: ExampleSpec | None = None

One declaration defines the value that code reads, the schema that validates it, and the CRD for an
API server. Descriptions come from docstrings: the class's own, and the one under each field.
"""

from collections.abc import Callable
from typing import Annotated, ClassVar, Final, Self, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from pergola.api.objects import JsonObject, JsonValue

S = TypeVar("S", bound="Object")


class Value(msgspec.Struct, rename="camel", omit_defaults=True):
    """A part of an API object: snake_case here, camelCase as JSON.

    A field without a default is required; a field that may be None is optional and has no null.
    Reading a value fills in Python defaults, which the API server does not know (see `default`).
    """

    def to_json(self) -> JsonObject:
        """Return the object as JSON, without fields that equal their default."""
        value: JsonObject = msgspec.to_builtins(self, enc_hook=str)
        return value

    def to_complete_json(self) -> JsonObject:
        """Return the object as JSON, with the defaults of all fields that are not null."""
        fields = {
            field.encode_name: getattr(self, field.name) for field in msgspec.structs.fields(self)
        }
        return {name: _complete(value) for name, value in fields.items() if value is not None}


def _complete(value: object) -> JsonValue:
    if isinstance(value, Value):
        return value.to_complete_json()
    builtin: JsonValue = msgspec.to_builtins(value, enc_hook=str)
    return builtin


class Scalar:
    """A type that is a string in JSON, e.g. a duration.

    Attributes:
        schema: the schema of the string.
    """

    schema: ClassVar[JsonObject]

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse the text.

        Raises:
            ValueError: it does not follow the schema.
        """
        raise NotImplementedError


ObjectMeta: TypeAlias = JsonObject
"""Metadata stays JSON: the API server knows its schema, and it has many owners."""


class Object(Value, kw_only=True):
    """A separate kind, with the `apiVersion` and `kind` from `@kind`."""

    resource: ClassVar["Kind"]

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = {}


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`; `path` is a JSONPath of the API server."""

    name: str
    path: str
    type: str = "string"


AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")


def condition_column(name: str, condition: str) -> Column:
    """Declare a column with the status of a condition."""
    return Column(name, f'.status.conditions[?(@.type=="{condition}")].status')


class Kind(msgspec.Struct, frozen=True):
    """The properties of a kind on an API server.

    Attributes:
        short: short names for `kubectl`.
        status: whether the status is a subresource.
        labels: labels of the CustomResourceDefinition.
    """

    group: str
    version: str
    name: str
    plural: str
    short: tuple[str, ...]
    categories: tuple[str, ...]
    namespaced: bool
    status: bool
    columns: tuple[Column, ...]
    labels: dict[str, str]

    @property
    def api_version(self) -> str:
        """The group and version as in manifests: `group/version`."""
        return f"{self.group}/{self.version}"


def kind(
    api_version: str,
    *,
    plural: str = "",
    short: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    namespaced: bool = True,
    status: bool = False,
    columns: tuple[Column, ...] = (),
    labels: dict[str, str] | None = None,
) -> Callable[[type[S]], type[S]]:
    """Declare a Struct to be a kind of `group/version` with the name of the class.

    By default, `plural` is the English plural of the name, in lower case.

    Raises:
        TypeError: a list of names is one text, whose letters would become the names.
    """
    _check_names(short=short, categories=categories)
    group, _, version = api_version.rpartition("/")

    def declare(cls: type[S]) -> type[S]:
        cls.resource = Kind(
            group=group,
            version=version,
            name=cls.__name__,
            plural=plural or _plural(cls.__name__.lower()),
            short=short,
            categories=categories,
            namespaced=namespaced,
            status=status,
            columns=columns,
            labels=labels or {},
        )
        return cls

    return declare


def _check_names(**fields: object) -> None:
    for field, value in fields.items():
        if isinstance(value, str):
            raise TypeError(f"{field} is a tuple of names, not the text {value!r}")


def _plural(name: str) -> str:
    if name.endswith(("s", "x", "z", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and not name.endswith(("ay", "ey", "iy", "oy", "uy")):
        return f"{name[:-1]}ies"
    return f"{name}s"


# Facets: properties of a schema that Python types lack. Used as Annotated[type, facet, …].


def default(value: JsonValue) -> Meta:
    """Declare the value that the API server fills in for an absent field."""
    return Meta(extra_json_schema={"default": value})


def rule(expression: str, message: str) -> Meta:
    """Declare a CEL expression that must hold; otherwise the API server returns `message`."""
    return Meta(
        extra_json_schema={"x-kubernetes-validations": [{"rule": expression, "message": message}]}
    )


def keyed_by(*fields: str) -> Meta:
    """Declare the fields that identify a list's items; server-side apply merges by them."""
    return Meta(
        extra_json_schema={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": list(fields),
        }
    )


IMMUTABLE: Final = rule("self == oldSelf", "the field is immutable")
NULLABLE: Final = Meta(extra_json_schema={"nullable": True})
INT32: Final = Meta(extra_json_schema={"format": "int32"})
DATE_TIME: Final = Meta(extra_json_schema={"format": "date-time"})
ATOMIC_LIST: Final = Meta(extra_json_schema={"x-kubernetes-list-type": "atomic"})
SET: Final = Meta(extra_json_schema={"x-kubernetes-list-type": "set"})
ATOMIC: Final = Meta(extra_json_schema={"x-kubernetes-map-type": "atomic"})
"""Server-side apply takes the map as one value: one owner, no merging inside."""

EMBEDDED: Final = Meta(
    extra_json_schema={
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
)
"""A whole object of any kind."""

Timestamp: TypeAlias = Annotated[str, DATE_TIME]
