"""Fields that a user set survive every change of the network, on a real API server (spec 50 §5).

Whether a field can be lost depends on the server's merge of managed fields, which works differently
for kinds with and without a schema.
"""

import secrets
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pergola.api.cluster_api import INFRASTRUCTURE_GROUP
from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue, Key, map_at, maps_at
from pergola.externally_managed.ownership import (
    ENDPOINT,
    MANAGER,
    Path,
    decide_fields,
    owned_fields,
)
from pergola.kube.errors import Invalid
from pergola.testing.world import RecordingClient
from tests.support.cluster_api import OLD, infra_cluster, infra_cluster_crd, install

TYPED = GroupVersionKind(INFRASTRUCTURE_GROUP, "v1beta1", "TypedCluster")
USER = "kubectl-edit"
TEXT: JsonObject = {"type": "string"}
TEXTS: JsonObject = {"type": "array", "items": TEXT}


def typed_crd() -> JsonObject:
    """Return a kind whose schema has every type of list and map."""
    subnet = {"type": "object", "properties": {"id": TEXT, "zone": TEXT}, "required": ["id"]}
    network: JsonObject = {
        "id": TEXT,
        "isPublic": {"type": "boolean"},
        "limit": {"type": "integer"},
        "tags": {"type": "object", "additionalProperties": TEXT},
        "fixed": {
            "type": "object",
            "additionalProperties": TEXT,
            "x-kubernetes-map-type": "atomic",
        },
        "zones": TEXTS,
        "groups": {**TEXTS, "x-kubernetes-list-type": "set"},
        "subnets": {
            "type": "array",
            "items": subnet,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id"],
        },
    }
    crd = infra_cluster_crd(TYPED)
    (version,) = crd["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["x-kubernetes-preserve-unknown-fields"]
    spec["properties"]["network"] = {"type": "object", "properties": network}
    return crd


words = st.sampled_from(["a", "b"])
maps = st.dictionaries(st.sampled_from("xy"), words, max_size=2)
sets = st.lists(words, unique=True)
subnets = st.lists(
    st.fixed_dictionaries({"id": words}, optional={"zone": words}),
    unique_by=lambda each: each["id"],
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "controlPlaneEndpoint": st.fixed_dictionaries({"host": words, "port": st.integers(1, 2)}),
        "network": st.fixed_dictionaries(
            {},
            optional={
                "id": words,
                "isPublic": st.booleans(),
                "limit": st.integers(0, 2),
                "tags": maps,
                "fixed": maps,
                "zones": sets,
                "groups": sets,
                "subnets": subnets,
            },
        ),
    },
)
Step = tuple[Literal["network", "merge patch", "apply"], JsonObject]
steps = st.lists(
    st.tuples(st.sampled_from(["network", "network", "merge patch", "apply"]), specs), max_size=6
)


class Site:
    """One InfraCluster, with a user and a network that both change."""

    def __init__(self, client: RecordingClient, gvk: GroupVersionKind, namespace: str) -> None:
        self.client = client
        self.gvk = gvk
        self.key = Key(namespace, f"demo-{secrets.token_hex(5)}")

    async def create(self) -> None:
        await self.client.create(infra_cluster(self.gvk, self.key.name, self.key.namespace))

    async def take(self, step: Step) -> None:
        how, spec = step
        if how == "network":
            await self.follow(spec)
            return
        with suppress(Invalid):  # half an endpoint, or none at all
            if how == "apply":
                await self.client.apply(self._with(spec), manager=USER, force=True)
            else:
                await self.client.patch(self.gvk, self.key, {"spec": spec})

    async def follow(self, network: JsonObject) -> None:
        """Apply a network as the external manager does, and check that nothing is lost."""
        before = await self.client.get(self.gvk, self.key)
        decision = decide_fields(network, map_at(before, "spec"), owned_fields(before, "spec"))
        after = before
        if decision.removed:
            after = await self.client.patch(self.gvk, self.key, {"spec": decision.removed})
        if decision.differs:
            after = await self.client.apply(
                self._with(decision.fields), manager=MANAGER, force=True
            )
        for path, value in set_by_hand(before):
            assert at(map_at(after, "spec"), path) == value, (path, network, before, after)
        again = decide_fields(network, map_at(after, "spec"), owned_fields(after, "spec"))
        assert not again.differs, (network, before, after)
        assert not again.removed, (network, before, after)
        assert again.conflicts == decision.conflicts

    def _with(self, spec: JsonObject) -> JsonObject:
        metadata = {"name": self.key.name, "namespace": self.key.namespace}
        kind = {"apiVersion": self.gvk.api_version, "kind": self.gvk.kind}
        return {**kind, "metadata": metadata, "spec": spec}


def set_by_hand(obj: JsonObject) -> list[tuple[Path, JsonValue]]:
    """Return the values in a spec that the server attributes to the user, with whole lists."""
    found: dict[Path, JsonValue] = {}
    for entry in maps_at(obj, "metadata", "managedFields"):
        if entry["manager"] != MANAGER:
            for path in field_paths(map_at(entry, "fieldsV1", "f:spec"), ()):
                value = at(map_at(obj, "spec"), path)
                is_atomic = obj["kind"] == TYPED.kind and path == ("network", "fixed")
                if isinstance(value, dict) and not is_atomic:
                    continue  # a map that the user created: its entries have their own owners
                if value not in (None, "", [], {}) or isinstance(value, bool | int):
                    found[path] = value
    return list(found.items())


def field_paths(fields: JsonObject, path: Path) -> Iterator[Path]:
    inner = {name: below for name, below in fields.items() if name.startswith("f:")}
    if not inner and path:
        yield path
    for name, below in inner.items():
        yield from field_paths(below, (*path, name[2:]))


def at(value: Any, path: Path) -> JsonValue:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value  # type: ignore[no-any-return] # JSON


@pytest.fixture(params=[OLD, TYPED], ids=["without a schema", "with a schema"])
async def new_site(
    request: pytest.FixtureRequest, infra_client: RecordingClient, namespace: str
) -> Any:
    await install(infra_client, typed_crd())
    return lambda: Site(infra_client, request.param, namespace)


@given(taken=steps)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_fields_set_by_a_user_survive_every_change_of_the_network(
    new_site: Any, taken: list[Step]
) -> None:
    site = new_site()
    await site.create()
    for step in taken:
        await site.take(step)


async def test_a_value_changed_by_a_user_is_kept_when_the_network_changes(
    new_site: Any,
) -> None:
    site = new_site()
    await site.create()
    await site.follow({"network": {"id": "a", "tags": {"x": "a"}}})
    await site.take(("merge patch", {"network": {"id": "b", "tags": {"y": "b"}}}))
    networks: list[JsonObject] = [{"network": {"id": "a"}}, {"network": {}}, {}]
    for network in networks:
        await site.follow(network)
    obj = await site.client.get(site.gvk, site.key)
    assert obj["spec"]["network"] == {"id": "b", "tags": {"y": "b"}}


async def test_a_list_that_becomes_empty_is_written_once(new_site: Any) -> None:
    site = new_site()
    await site.create()
    endpoint = {"host": "a", "port": 6443}
    await site.follow({"network": {"groups": ["a"]}, ENDPOINT: endpoint})
    await site.follow({"network": {"groups": []}, ENDPOINT: endpoint})
    obj = await site.client.get(site.gvk, site.key)
    assert not at(map_at(obj, "spec"), ("network", "groups"))


@pytest.mark.parametrize("empty", [{"groups": []}, {"tags": {}}, {"tags": {"x": None}}])
async def test_an_empty_value_alone_causes_no_write(new_site: Any, empty: JsonObject) -> None:
    site = new_site()
    await site.create()
    obj = await site.client.get(site.gvk, site.key)
    decision = decide_fields({"network": empty}, map_at(obj, "spec"), owned_fields(obj, "spec"))
    assert not decision.differs
