"""API types declared once: as Python values, schemas, CRDs and validation.

Declare a type with `Value`, `Object` and `@kind` (see `declare`). `crd` returns its
CustomResourceDefinition, `validate` all findings about a value, and `read` converts JSON to the
type. Kinds of other projects are plain JSON instead.
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
