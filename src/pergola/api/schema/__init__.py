"""API types declared once: the value that code reads, its schema, its CRD and its validation.

Declare with `Value`, `Object` and `@kind` (see `declare`), then `crd` makes the
CustomResourceDefinition, `validate` reports all that is wrong with a value, and `read` makes a
declared type of JSON. Not for kinds of others: those travel as plain JSON.
"""

from pergola.api.schema.crd import crd
from pergola.api.schema.declare import Column, Kind, Object, Value, kind
from pergola.api.schema.read import Malformed, read
from pergola.api.schema.structural import SchemaError, schema_of
from pergola.api.schema.validate import Finding, validate

__all__ = [
    "Column",
    "Finding",
    "Kind",
    "Malformed",
    "Object",
    "SchemaError",
    "Value",
    "crd",
    "kind",
    "read",
    "schema_of",
    "validate",
]
