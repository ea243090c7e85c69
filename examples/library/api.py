"""Objects of Kubernetes as JSON, and types of your own: `pergola.api` and the packages below it."""

from datetime import UTC, datetime

from pergola.api import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    generation_of,
    get_condition,
    labels_of,
    map_at,
    maps_at,
    metadata_of,
    name_of,
    namespace_of,
    owner_reference,
    owner_references_of,
    resource_version_of,
    set_condition,
    uid_of,
    without_nulls,
)
from pergola.api.field_errors import (
    IMMUTABLE,
    Cause,
    duplicate,
    forbidden,
    invalid,
    required,
    sentence,
    shown,
    unsupported,
)
from pergola.api.schema import (
    Column,
    Finding,
    Kind,
    Malformed,
    Object,
    Value,
    crd,
    kind,
    read,
    schema_of,
    validate,
)
from pergola.api.typed import (
    Bastion,
    Cluster,
    Extension,
    Garden,
    Infrastructure,
    ManagedResource,
    Network,
    typed,
)

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"namespace": "shop", "name": "web-1", "uid": "1", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web"}]},
}


def metadata() -> None:
    """Read metadata; what is missing is empty, and nothing raises."""
    assert (namespace_of(POD), name_of(POD), uid_of(POD)) == ("shop", "web-1", "1")
    assert Key.of(POD) == Key("shop", "web-1")
    assert labels_of(POD) == {"app": "web"}
    assert annotations_of(POD) == {}
    assert metadata_of({}) == {}
    assert finalizers_of(POD) == []
    assert (generation_of(POD), resource_version_of(POD)) == (0, "")
    assert deletion_timestamp_of(POD) is None


def fields() -> None:
    """Read nested fields of objects that anybody may have written."""
    assert map_at(POD, "status", "capacity") == {}
    assert [each["name"] for each in maps_at(POD, "spec", "containers")] == ["web"]
    assert without_nulls({"a": None, "b": {"c": None}}) == {"b": {}}


def kinds() -> None:
    """Name a kind, with its version or without."""
    deployment = GroupVersionKind.parse("apps/v1", "Deployment")
    assert deployment == GroupVersionKind("apps", "v1", "Deployment")
    assert deployment.group_kind == GroupKind("apps", "Deployment")
    assert GroupVersionKind.of(POD).api_version == "v1"


def ownership() -> None:
    """Make an object disappear with its owner."""
    config = {"metadata": {"name": "settings", "ownerReferences": [owner_reference(POD)]}}
    assert [each["name"] for each in owner_references_of(config)] == ["web-1"]


def conditions() -> None:
    """Write a condition; its time changes only with its status."""
    first, later = (datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (8, 9))
    ready = set_condition([], "Ready", status="True", reason="Up", message="it runs", now=first)
    same = set_condition(ready, "Ready", status="True", reason="Up", message="still", now=later)
    found = get_condition(same, "Ready")
    assert found is not None
    assert found["lastTransitionTime"] == "2026-01-01T08:00:00Z"


class PizzaSpec(Value):
    """The desired pizza."""

    size: int = 30
    vegan: bool = False


@kind("example.com/v1", short=("pz",), columns=(Column("Size", ".spec.size", "integer"),))
class Pizza(Object):
    """A kind of your own."""

    spec: PizzaSpec


def own_kinds() -> None:
    """Declare a kind once: a Python type, its definition, its schema and its validation."""
    assert isinstance(Pizza.resource, Kind)
    assert crd(Pizza)["metadata"]["name"] == "pizzas.example.com"
    lunch: JsonObject = {"spec": {"size": 26}}
    pizza = read(Pizza, lunch, of="Pizza lunch")
    assert pizza.spec.size == 26
    wrong: JsonObject = {"spec": {"size": "large"}}
    [finding] = validate(schema_of(Pizza), wrong)
    assert isinstance(finding, Finding)
    assert finding.path == "spec.size"
    try:
        read(Pizza, wrong, of="Pizza lunch")
    except Malformed as error:
        assert "spec.size" in str(error)


def kinds_of_pergola() -> None:
    """Read objects of Pergola's and Gardener's kinds with types."""
    metadata = {"namespace": "shop", "name": "web"}
    live = {"metadata": metadata, "spec": {"secretRefs": [{"name": "web"}]}}
    resource = typed(ManagedResource, live)
    assert resource.spec is not None
    assert [each.name for each in resource.spec.secret_refs] == ["web"]
    try:
        typed(ManagedResource, {"metadata": metadata, "spec": {"secretRefs": "web"}})
    except Malformed as error:
        assert "ManagedResource shop/web" in str(error)
    others = (Bastion, Cluster, Extension, Garden, Infrastructure, Network)
    assert all(each.resource.plural for each in others)


def findings() -> None:
    """Report what is wrong with a field in the words of the API server."""
    found = [
        required("spec.name"),
        invalid("spec.size", -1, "must be positive"),
        unsupported("spec.mode", "warm", ["cold", "hot"]),
        forbidden("spec.color", "only for lamps"),
        duplicate("spec.toppings[1]", "basil"),
    ]
    assert all(isinstance(each, Cause) for each in found)
    assert sentence(found[:1]) == "spec.name: Required value: field is required"
    assert shown("a") == '"a"'
    assert "immutable" in invalid("spec.name", "x", IMMUTABLE).message
