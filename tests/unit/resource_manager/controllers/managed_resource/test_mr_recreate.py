"""Which objects are deleted because the server refuses their update."""

from typing import cast

import orjson
import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import Invalid
from pergola.resource_manager.controllers.managed_resource.plan import Planned
from pergola.resource_manager.controllers.managed_resource.recreate import delete_to_recreate

SECRET = GroupVersionKind("", "v1", "Secret")
FROZEN = "Forbidden: field is immutable when `immutable` is set"
TYPE = 'Invalid value: "a": field is immutable'


class Deletions:
    """A client that only counts deletions."""

    def __init__(self) -> None:
        self.keys: list[Key] = []

    async def delete(self, gvk: GroupVersionKind, key: Key, **_: str) -> bool:
        self.keys.append(key)
        return True


def refusal(reason: str, field: str, message: str) -> Invalid:
    causes = [{"reason": reason, "message": message, "field": field}]
    text = f'Secret "a" is invalid: {field}: {message}'
    return Invalid(422, {"reason": "Invalid", "message": text, "details": {"causes": causes}})


def planned(obj: JsonObject) -> Planned:
    key = Key.of(obj)
    return Planned(SECRET, key, str(key), b"{}", b"", orjson.dumps(obj))


OBJECT: JsonObject = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "a", "namespace": "n", "uid": "1"},
}


async def test_an_immutable_secret_is_recreated() -> None:
    client = Deletions()
    error = refusal("FieldValueForbidden", "data", FROZEN)

    await delete_to_recreate(cast("Client", client), planned(OBJECT), OBJECT, OBJECT, error)

    assert client.keys == [Key("n", "a")]


async def test_a_secret_whose_manifest_has_another_type_is_not_recreated() -> None:
    client = Deletions()
    error = refusal("FieldValueInvalid", "type", TYPE)

    with pytest.raises(Invalid):
        await delete_to_recreate(cast("Client", client), planned(OBJECT), OBJECT, OBJECT, error)

    assert client.keys == []
