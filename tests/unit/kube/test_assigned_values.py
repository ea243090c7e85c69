"""Values that others set survive an update that does not name them."""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from pergola.api.objects import GroupKind, JsonObject, JsonValue
from pergola.kube.equality import Shape, same, shape_of, with_assigned
from pergola.kube.equality.defaults import _SHAPES
from pergola.kube.equality.shapes import ASSIGNED, INJECTED, SERVER, Default, Each, Filled, Present

VOLUME: Final = GroupKind("", "PersistentVolume")
CLAIM_REF: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "namespace": "ns",
    "name": "data",
    "uid": "1",
    "resourceVersion": "2",
}
RECURSIVE: Final = ("properties", "patternProperties", "definitions", "items", "not")
"""Fields of JSON schemas that contain schemas."""

NAMED: Final = {"webhooks", "volumes", "ports", "volumeClaimTemplates"}
"""Lists on the way to a value that others set."""


def assigned(shape: Shape, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the path of each value that others set."""
    if isinstance(shape, Default | Each):
        shape = shape.shape
    if isinstance(shape, Filled | Present):
        shape = shape.fields
    if shape in (SERVER, ASSIGNED, INJECTED):
        yield path
    elif isinstance(shape, Mapping):
        for name, field in shape.items():
            if len(path) < 9 and name not in RECURSIVE:
                yield from assigned(field, *path, name)


def object_with(path: tuple[str, ...], value: JsonValue) -> JsonObject:
    """Return an object with a value; the items of lists are named."""
    name, *rest = path
    below: JsonValue = object_with(tuple(rest), value) if rest else value
    if name in NAMED and isinstance(below, dict):
        below = [{"name": "one", **below}]
    return {name: below} if below is not None else {}


ALL: Final = [(kind, path) for kind in _SHAPES for path in assigned(shape_of(kind))]


@pytest.mark.parametrize(
    ("kind", "path"), ALL, ids=[f"{kind.kind}-{'.'.join(path)}" for kind, path in ALL]
)
def test_a_value_that_others_set_is_kept_unless_the_manifest_names_it(
    kind: GroupKind, path: tuple[str, ...]
) -> None:
    live, desired = object_with(path, "theirs"), object_with(path, None)
    shape = shape_of(kind)

    assert with_assigned(desired, live, shape) == live
    assert same(live, desired, shape)
    ours = object_with(path, "ours")
    assert with_assigned(ours, live, shape) == ours


def test_the_table_has_values_that_others_set() -> None:
    paths = {(kind.kind, ".".join(path)) for kind, path in ALL}

    assert paths >= {
        ("PersistentVolume", "spec.claimRef.uid"),
        ("PersistentVolumeClaim", "spec.volumeName"),
        ("Node", "spec.providerID"),
        ("MutatingWebhookConfiguration", "webhooks.clientConfig.caBundle"),
        ("CustomResourceDefinition", "spec.conversion.webhook.clientConfig.caBundle"),
        ("APIService", "spec.caBundle"),
        ("Pod", "spec.nodeName"),
    }


@pytest.mark.parametrize("given", [{}, {"namespace": "ns", "name": "data"}])
def test_a_volume_keeps_its_claim_also_if_the_manifest_bound_it_in_advance(
    given: JsonObject,
) -> None:
    desired: JsonObject = {"spec": {"claimRef": given} if given else {}}

    completed = with_assigned(desired, {"spec": {"claimRef": CLAIM_REF}}, shape_of(VOLUME))

    assert completed == {"spec": {"claimRef": CLAIM_REF}}


def test_a_manifest_that_names_another_claim_gets_nothing_of_the_old_one() -> None:
    desired: JsonObject = {"spec": {"claimRef": {"namespace": "ns", "name": "other"}}}

    assert with_assigned(desired, {"spec": {"claimRef": CLAIM_REF}}, shape_of(VOLUME)) == desired


def test_an_api_service_without_verification_gets_no_authority() -> None:
    desired: JsonObject = {"spec": {"insecureSkipTLSVerify": True}}
    shape = shape_of(GroupKind("apiregistration.k8s.io", "APIService"))

    assert with_assigned(desired, {"spec": {"caBundle": "eA=="}}, shape) == desired


def test_a_webhook_gets_the_authority_of_the_one_with_its_name() -> None:
    live: JsonObject = {
        "webhooks": [
            {"name": "a", "clientConfig": {"caBundle": "YQ=="}},
            {"name": "b", "clientConfig": {"caBundle": "Yg=="}},
        ]
    }
    desired: JsonObject = {"webhooks": [{"name": n, "clientConfig": {}} for n in ("b", "new")]}
    shape = shape_of(GroupKind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"))

    assert with_assigned(desired, live, shape) == {
        "webhooks": [
            {"name": "b", "clientConfig": {"caBundle": "Yg=="}},
            {"name": "new", "clientConfig": {}},
        ]
    }
