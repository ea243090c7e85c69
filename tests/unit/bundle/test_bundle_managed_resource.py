import base64
import copy
import hashlib
import random

import brotli
import pytest

from pergola.api.objects import (
    GroupKind,
    JsonObject,
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
)
from pergola.api.resources_v1alpha1 import ManagedResourceSpec
from pergola.bundle.managed_resource import (
    Settings,
    build,
    for_seed,
    for_shoot,
    merge_into,
    secret_names,
)
from pergola.bundle.references import Reference, annotated_references
from pergola.bundle.registry import Registry
from pergola.bundle.split import SECRET_LIMIT
from pergola.kube.yaml import parse_documents

COLLECTABLE = "resources.gardener.cloud/garbage-collectable-reference"


def config_map(name: str, **data: str) -> JsonObject:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


ONE = Registry(config_map("greeting", text="hello"))


def data_of(secret: JsonObject) -> bytes:
    [(key, value)] = secret["data"].items()
    assert key == "data.yaml.br"
    return base64.b64decode(value)


def test_a_bundle_is_an_immutable_secret_and_a_managed_resource() -> None:
    bundle = build("ns", "demo", ONE)

    [secret] = bundle.secrets
    data = data_of(secret)
    digits = hashlib.sha256(hashlib.sha256(data).hexdigest().encode()).hexdigest()[:8]
    assert name_of(secret) == f"managedresource-demo-{digits}"
    assert namespace_of(secret) == "ns"
    assert secret["immutable"] is True
    assert labels_of(secret) == {COLLECTABLE: "true"}
    assert [d.value for d in parse_documents(brotli.decompress(data))] == [
        config_map("greeting", text="hello")
    ]

    resource = bundle.managed_resource
    assert (namespace_of(resource), name_of(resource)) == bundle.key == ("ns", "demo")
    assert resource["spec"] == {"secretRefs": [{"name": name_of(secret)}]}
    assert annotated_references(annotations_of(resource)) == {Reference("secret", name_of(secret))}


def test_the_prefix_of_secrets_can_be_omitted() -> None:
    [secret] = build("ns", "demo", ONE, secret_prefix=False).secrets
    assert name_of(secret).startswith("demo-")


def test_no_objects_need_no_secret() -> None:
    bundle = build("ns", "demo", Registry())
    assert bundle.secrets == ()
    assert bundle.managed_resource["spec"] == {"secretRefs": []}


def test_large_bundles_are_split_into_several_secrets() -> None:
    source = random.Random(3)  # noqa: S311 - the same every time
    names = [f"map-{number}" for number in range(5)]
    objects = Registry(*(config_map(n, noise=source.randbytes(250_000).hex()) for n in names))

    bundle = build("ns", "demo", objects, quality=1)

    assert len(bundle.secrets) > 1
    assert all(len(data_of(secret)) <= SECRET_LIMIT for secret in bundle.secrets)
    references = [{"name": name_of(secret)} for secret in bundle.secrets]
    assert bundle.managed_resource["spec"]["secretRefs"] == references
    assert secret_names(bundle.managed_resource) == {r["name"] for r in references}
    assert len(annotations_of(bundle.managed_resource)) == len(bundle.secrets)
    found = [
        document.value["metadata"]["name"]  # type: ignore[call-overload, index]
        for secret in bundle.secrets
        for document in parse_documents(brotli.decompress(data_of(secret)))
    ]
    assert found == names


def test_a_bundle_for_a_shoot() -> None:
    settings = Settings(inject_labels={"team": "a"}, resource_class="other")
    bundle = for_shoot("shoot--x", "demo", ONE, origin="gardener", settings=settings)
    resource = bundle.managed_resource
    assert labels_of(resource) == {"origin": "gardener"}
    assert resource["spec"] == {
        "secretRefs": [{"name": name_of(bundle.secrets[0])}],
        "injectLabels": {"team": "a", "shoot.gardener.cloud/no-cleanup": "true"},
        "keepObjects": False,
    }


@pytest.mark.parametrize(
    ("namespace", "labels"),
    [
        ("garden", {"a": "b", "gardener.cloud/role": "seed-system-component"}),
        ("shoot--project--name", {"a": "b"}),
    ],
)
def test_a_bundle_for_the_seed(namespace: str, labels: dict[str, str]) -> None:
    bundle = for_seed(namespace, "demo", ONE, keep_objects=True, labels={"a": "b"})
    resource = bundle.managed_resource
    assert labels_of(resource) == labels
    assert resource["spec"] == {
        "class": "seed",
        "secretRefs": [{"name": name_of(bundle.secrets[0])}],
        "keepObjects": True,
    }


def test_every_setting_is_a_field_of_the_api() -> None:
    settings = Settings(
        resource_class="c",
        inject_labels={"a": "b"},
        keep_objects=True,
        force_overwrite_labels=True,
        force_overwrite_annotations=True,
        equivalences=[[GroupKind("apps", "Deployment"), GroupKind("", "Deployment")]],
        delete_persistent_volume_claims=True,
    )
    resource = build("ns", "demo", ONE, settings=settings).managed_resource
    assert ManagedResourceSpec.from_object(resource).to_json() == resource["spec"]


def test_merging_keeps_live_labels_and_annotations_and_replaces_the_spec() -> None:
    desired = build("ns", "demo", ONE, labels={"a": "new"}, annotations={"b": "new"})
    old = build("ns", "demo", Registry(config_map("other"))).managed_resource
    live = copy.deepcopy(old)
    live["metadata"]["resourceVersion"] = "7"
    live["metadata"]["labels"] = {"a": "old", "own": "label"}
    live["metadata"]["annotations"] |= {"b": "old", "own": "annotation"}
    live["spec"]["keepObjects"] = True
    live["status"] = {"observedGeneration": 1}

    merged = merge_into(live, desired.managed_resource)

    assert labels_of(merged) == {"a": "new", "own": "label"}
    references = annotated_references(annotations_of(merged))
    assert references == {Reference("secret", name_of(desired.secrets[0]))}
    rest = {k: v for k, v in annotations_of(merged).items() if not k.startswith("reference.")}
    assert rest == {"b": "new", "own": "annotation"}
    assert merged["spec"] == desired.managed_resource["spec"]
    assert merged["metadata"]["resourceVersion"] == "7"
    assert merged["status"] == live["status"]


def test_merging_twice_changes_nothing() -> None:
    desired = build("ns", "demo", ONE).managed_resource
    live = {**desired, "metadata": {**desired["metadata"], "uid": "u"}, "status": {}}
    assert merge_into(live, desired) == live


def test_labels_of_the_caller_win_over_those_of_the_cluster() -> None:
    labels = {"origin": "me", "gardener.cloud/role": "mine"}

    shoot = for_shoot("shoot--x", "demo", ONE, origin="gardener", labels=labels)
    seed = for_seed("garden", "demo", ONE, labels=labels)

    assert labels_of(shoot.managed_resource) == labels
    assert labels_of(seed.managed_resource) == labels
