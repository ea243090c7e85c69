"""Values of charts with expressions such as `{{ .resources.credentials.data.password }}`.

An expression names one of the Extension's `spec.deployment.resources`: a Secret or ConfigMap in the
garden's namespace with the label that releases it for this use.
"""

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import JsonObject, JsonValue, Key, labels_of, map_at, maps_at
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.operator.extension.errors import ExtensionFailed

EXPRESSION: Final = re.compile(r"{{\s*\.resources\.([A-Za-z0-9]+)\.data\.([-._A-Za-z0-9]+)\s*}}")
RELEASED: Final = "resource-reference"
"""The role, as a label, of objects whose data may be used in values."""

_KINDS: Final = {kind.kind: kind for kind in (SECRET, CONFIG_MAP)}


@dataclass(frozen=True, slots=True)
class Resolved:
    """Values without expressions.

    Attributes:
        hidden: The texts from Secrets.
        objects: The objects that the expressions name, by their names in the Extension.
    """

    values: JsonObject
    hidden: frozenset[str] = field(repr=False)
    objects: Mapping[str, JsonObject] = field(default_factory=dict, repr=False)


async def resolve(client: Client, extension: JsonObject, values: JsonObject, at: str) -> Resolved:
    """Return values with their expressions replaced by data.

    Args:
        values: The values in an Extension.
        at: Their field, for error messages.

    Raises:
        ExtensionFailed: An object, its label or a key is missing.
        KubeError: The API server refused, or did not answer.
    """
    objects = await _referenced(client, extension, values, at)
    hidden: set[str] = set()

    def replace(found: re.Match[str]) -> str:
        text = _datum(objects[found[1]], found[2], at)
        if objects[found[1]].get("kind") == SECRET.kind:
            hidden.add(text)
        return text

    substituted = _substituted(values, replace)
    if not isinstance(substituted, dict):
        raise AssertionError("a map stays a map")
    return Resolved(substituted, frozenset(hidden), objects)


async def _referenced(
    client: Client, extension: JsonObject, values: JsonObject, at: str
) -> Mapping[str, JsonObject]:
    """Return the objects that expressions in values name, by their names in the Extension.

    Raises:
        ExtensionFailed: An object or its label is missing.
        KubeError: The API server refused, or did not answer.
    """
    names = {found[1] for text in _texts(values) for found in EXPRESSION.finditer(text)}
    declared = {
        str(each.get("name")): map_at(each, "resourceRef")
        for each in maps_at(extension, "spec", "deployment", "resources")
    }
    objects = {}
    for name in sorted(names):
        if name not in declared:
            raise ExtensionFailed(
                f'{at} uses the resource "{name}", which spec.deployment.resources does not '
                "declare: declare it, or correct the expression"
            )
        objects[name] = await _read(client, declared[name], f'{at} uses as "{name}"')
    return objects


async def _read(client: Client, reference: JsonObject, used: str) -> JsonObject:
    kind, key = str(reference.get("kind")), Key(NAMESPACE, str(reference.get("name")))
    if kind not in _KINDS:
        raise ExtensionFailed(f"{kind} {key}, which {used}, is neither Secret nor ConfigMap")
    found = await client.find(_KINDS[kind], key)
    if found is None:
        raise ExtensionFailed(f"{kind} {key}, which {used}, does not exist: create it")
    if labels_of(found).get(marks.ROLE) != RELEASED:
        raise ExtensionFailed(
            f"{kind} {key}, which {used}, lacks the label {marks.ROLE}={RELEASED}: set it if its "
            "data may be used"
        )
    return {**found, "kind": kind}


def _datum(obj: JsonObject, key: str, at: str) -> str:
    value = map_at(obj, "data").get(key)
    if not isinstance(value, str):
        raise ExtensionFailed(
            f'{obj["kind"]} {Key.of(obj)}, which {at} uses, has no key "{key}": add it'
        )
    if obj["kind"] != SECRET.kind:
        return value
    try:
        return base64.b64decode(value).decode()
    except ValueError:
        raise ExtensionFailed(
            f'the key "{key}" of Secret {Key.of(obj)}, which {at} uses, is not text'
        ) from None


def _substituted(value: JsonValue, replace: Callable[[re.Match[str]], str]) -> JsonValue:
    match value:
        case str():
            return EXPRESSION.sub(replace, value)
        case list():
            return [_substituted(each, replace) for each in value]
        case dict():
            return {
                EXPRESSION.sub(replace, name): _substituted(each, replace)
                for name, each in value.items()
            }
        case _:
            return value


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _texts(each)
        case dict():
            for name, each in value.items():
                yield name
                yield from _texts(each)
