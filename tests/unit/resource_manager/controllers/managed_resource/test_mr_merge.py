"""The desired form of objects (spec 10 §5.1)."""

import copy
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api import marks
from pergola.api.objects import GroupKind, JsonObject
from pergola.resource_manager.controllers.managed_resource.compare import needs_update
from pergola.resource_manager.controllers.managed_resource.merge import (
    MergeError,
    MergeOptions,
    for_creation,
    merge,
)

ORIGIN: Final = "c1:ns/mr"
OPTIONS: Final = MergeOptions(ORIGIN, {marks.MANAGED_BY: "gardener"})
OWN: Final = {marks.DESCRIPTION: marks.DESCRIPTION_TEXT, marks.ORIGIN: ORIGIN}


def config_map(**metadata: object) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "ns", **metadata},
        "data": {"a": "b"},
    }


def merged_metadata(
    manifest: JsonObject,
    live: JsonObject,
    previous: JsonObject | None = None,
    options: MergeOptions = OPTIONS,
) -> JsonObject:
    metadata: JsonObject = merge(manifest, live, previous=previous, options=options)["metadata"]
    return metadata


# Must hold (1.1, 3.3)


def test_an_object_has_description_origin_and_managed_by() -> None:
    manifest = config_map()

    for obj in (
        for_creation(manifest, OPTIONS),
        merge(manifest, config_map(), previous=None, options=OPTIONS),
    ):
        assert obj["metadata"]["annotations"] == {
            "resources.gardener.cloud/description": (
                "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n"
                "Any modifications are discarded and the resource is returned to the original"
                " state."
            ),
            "resources.gardener.cloud/origin": "c1:ns/mr",
        }
        assert obj["metadata"]["labels"] == {"resources.gardener.cloud/managed-by": "gardener"}


# Must hold (5)


@pytest.mark.parametrize(
    ("live", "previous", "stays"),
    [
        ({"foo": "bar"}, {}, True),
        ({"foo": "bar"}, {"foo": "bar"}, False),
        ({"foo": "changed"}, {"foo": "bar"}, True),
    ],
)
@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_a_key_removed_from_the_manifest_is_deleted_unless_a_user_changed_it(
    field: str, live: dict[str, str], previous: dict[str, str], stays: bool
) -> None:
    metadata = merged_metadata(config_map(), config_map(**{field: live}), {field: previous})

    assert (metadata[field].get("foo") == live["foo"]) is stays
    assert ("foo" in metadata[field]) is stays


def test_a_reference_that_the_manifest_does_not_have_is_removed() -> None:
    gone, kept = (f"{marks.REFERENCE_PREFIX}secret-{n}" for n in ("12345678", "87654321"))
    live = config_map(annotations={gone: "s", kept: "old", "user": "u"})

    metadata = merged_metadata(config_map(annotations={kept: "new"}), live)

    assert metadata["annotations"] == {kept: "new", "user": "u", **OWN}


def test_forced_annotations_drop_foreign_ones_but_not_our_own() -> None:
    live = config_map(annotations={"user": "u", **OWN}, labels={"user": "u"})
    options = MergeOptions(ORIGIN, {}, force_annotations=True)

    metadata = merged_metadata(config_map(annotations={"mine": "m"}), live, options=options)

    assert metadata["annotations"] == {"mine": "m", **OWN}
    assert metadata["labels"] == {"user": "u"}


def test_forced_labels_drop_foreign_ones_but_not_injected_ones() -> None:
    live = config_map(annotations={"user": "u"}, labels={"user": "u"})
    options = MergeOptions(ORIGIN, {"foo": "bar"}, force_labels=True)

    metadata = merged_metadata(config_map(labels={"mine": "m"}), live, options=options)

    assert metadata["labels"] == {"mine": "m", "foo": "bar"}
    assert metadata["annotations"] == {"user": "u", **OWN}


def test_injected_labels_are_added_to_a_deployment_and_its_template() -> None:
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"template": {"metadata": {"labels": {"app": "a"}}}},
    }
    options = MergeOptions(ORIGIN, {"foo": "bar", marks.MANAGED_BY: "gardener"})

    created = for_creation(manifest, options)
    merged = merge(manifest, created, previous=None, options=options)

    for obj in (created, merged):
        assert obj["metadata"]["labels"] == options.labels
        assert obj["spec"]["template"]["metadata"]["labels"] == {"app": "a", **options.labels}


# The rules


def test_the_rest_of_the_live_metadata_is_kept() -> None:
    live = config_map(
        resourceVersion="7", uid="u", finalizers=["f"], managedFields=[{}], generation=3
    )
    manifest = config_map(finalizers=["mine"], resourceVersion="1", generateName="g")

    metadata = merged_metadata(manifest, live)

    kept = {"resourceVersion": "7", "uid": "u", "finalizers": ["f"], "managedFields": [{}]}
    assert metadata.items() >= kept.items()
    assert "generateName" not in metadata


def test_finalizers_of_the_manifest_are_set_at_creation() -> None:
    assert for_creation(config_map(finalizers=["mine"]), OPTIONS)["metadata"]["finalizers"] == [
        "mine"
    ]


def test_owners_are_taken_from_the_manifest() -> None:
    owners = [{"kind": "A", "uid": "1"}]

    assert merged_metadata(config_map(ownerReferences=owners), config_map())["ownerReferences"] == (
        owners
    )
    assert "ownerReferences" not in merged_metadata(
        config_map(), config_map(ownerReferences=owners)
    )


@pytest.mark.parametrize(("live", "expected"), [({"a": 1}, {"a": 1}), ({}, None), (None, None)])
def test_the_status_of_a_manifest_is_not_sent(
    live: JsonObject | None, expected: JsonObject | None
) -> None:
    manifest = {**config_map(), "status": {"mine": True}}

    merged = merge(manifest, {**config_map(), "status": live}, previous=None, options=OPTIONS)

    assert merged.get("status") == expected
    assert ("status" in merged) is (expected is not None)


def test_other_fields_are_taken_from_the_manifest() -> None:
    live = {**config_map(), "data": {"x": "y"}, "binaryData": {"b": ""}, "immutable": False}

    merged = merge(config_map(), live, previous=None, options=OPTIONS)

    assert merged["data"] == {"a": "b"}
    assert merged.keys() == {"apiVersion", "kind", "metadata", "data"}


def test_a_cron_job_of_an_unknown_version_is_refused() -> None:
    manifest = {**config_map(), "apiVersion": "batch/v2", "kind": "CronJob"}

    with pytest.raises(MergeError, match="version v2 of CronJob"):
        merge(manifest, config_map(), previous=None, options=OPTIONS)
    with pytest.raises(MergeError, match="version v2 of CronJob"):
        for_creation(manifest, OPTIONS)


# Properties

WORDS = st.sampled_from(["a", "b", "c", f"{marks.REFERENCE_PREFIX}secret-1", marks.MANAGED_BY])
TEXTS = st.dictionaries(WORDS, st.sampled_from(["", "1", "2"]), max_size=4)
ANNOTATIONS = st.dictionaries(
    st.sampled_from([marks.PRESERVE_REPLICAS, marks.PRESERVE_RESOURCES, "x"]),
    st.sampled_from(["true", "false"]),
)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["a", "b"])},
        optional={
            "image": st.sampled_from(["i", "i:1"]),
            "resources": st.fixed_dictionaries(
                {},
                optional={
                    "requests": st.dictionaries(
                        st.sampled_from(["cpu", "memory", "x"]), st.sampled_from(["1", "2Gi"])
                    )
                },
            ),
        },
    ),
    max_size=2,
)
TEMPLATES = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": TEXTS,
                "annotations": st.just({"kubectl.kubernetes.io/restartedAt": "t"}),
            },
        ),
        "spec": st.fixed_dictionaries({}, optional={"containers": CONTAINERS}),
    },
)
PORTS = st.lists(
    st.fixed_dictionaries(
        {"port": st.sampled_from([80, 443])},
        optional={
            "name": st.sampled_from(["a", "b"]),
            "nodePort": st.sampled_from([0, 30000, 30001]),
            "protocol": st.sampled_from(["TCP", "UDP"]),
        },
    ),
    max_size=3,
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.none() | st.integers(0, 3),
        "template": TEMPLATES,
        "jobTemplate": st.fixed_dictionaries(
            {}, optional={"spec": st.fixed_dictionaries({"template": TEMPLATES})}
        ),
        "volumeClaimTemplates": st.lists(st.fixed_dictionaries({"a": st.integers(0, 2)})),
        "selector": TEXTS,
        "type": st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]),
        "clusterIP": st.sampled_from(["None", "10.0.0.1", ""]),
        "ports": PORTS,
        "externalTrafficPolicy": st.just("Local"),
        "healthCheckNodePort": st.sampled_from([0, 31000]),
        "loadBalancerIP": st.sampled_from(["", "1.2.3.4"]),
    },
)
KINDS = st.sampled_from(
    [
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
        ("v1", "Service"),
        ("v1", "ServiceAccount"),
        ("v1", "ConfigMap"),
    ]
)
SECRETS = st.lists(st.fixed_dictionaries({"name": st.sampled_from(["s", "t"])}), max_size=2)


@st.composite
def objects(draw: st.DrawFn, kind: tuple[str, str]) -> JsonObject:
    fields = st.fixed_dictionaries(
        {
            "metadata": st.fixed_dictionaries(
                {"name": st.just("a")},
                optional={
                    "labels": TEXTS,
                    "annotations": TEXTS | ANNOTATIONS,
                    "ownerReferences": st.lists(st.just({"uid": "u"}), max_size=1),
                },
            )
        },
        optional={
            "spec": SPECS,
            "status": TEXTS,
            "secrets": SECRETS,
            "imagePullSecrets": SECRETS,
        },
    )
    return {"apiVersion": kind[0], "kind": kind[1], **draw(fields)}


@st.composite
def cases(draw: st.DrawFn) -> tuple[JsonObject, JsonObject, JsonObject, MergeOptions]:
    kind = draw(KINDS)
    previous = {"labels": draw(TEXTS), "annotations": draw(TEXTS)}
    group = GroupKind(kind[0].rpartition("/")[0], kind[1])
    options = MergeOptions(
        ORIGIN,
        draw(TEXTS),
        force_labels=draw(st.booleans()),
        force_annotations=draw(st.booleans()),
        scaled=draw(st.sampled_from([frozenset(), frozenset({(*group, "", "a")})])),
    )
    return draw(objects(kind)), draw(objects(kind)), previous, options


@given(cases())
def test_merging_twice_changes_nothing_more(
    case: tuple[JsonObject, JsonObject, JsonObject, MergeOptions],
) -> None:
    manifest, live, previous, options = case

    once = merge(manifest, live, previous=previous, options=options)
    twice = merge(manifest, once, previous=previous, options=options)

    assert twice == once
    assert not needs_update(once, twice)


@given(cases())
def test_merging_does_not_modify_its_arguments(
    case: tuple[JsonObject, JsonObject, JsonObject, MergeOptions],
) -> None:
    before = copy.deepcopy(case)
    manifest, live, previous, options = case

    merge(manifest, live, previous=previous, options=options)
    for_creation(manifest, options)

    assert case == before


@given(cases())
def test_merging_does_not_change_a_new_object(
    case: tuple[JsonObject, JsonObject, JsonObject, MergeOptions],
) -> None:
    manifest, _, _, options = case

    created = for_creation(manifest, options)

    assert not needs_update(created, merge(manifest, created, previous=None, options=options))
