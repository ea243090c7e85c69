"""EnvoyFilters for DestinationRules on a real API server: spec 11 §7.3."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pergola.api.kinds import DESTINATION_RULE, ENVOY_FILTER, NAMESPACE, SERVICE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, uid_of
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.kube.yaml import parse_documents
from pergola.resource_manager.controllers.istio_cluster_configuration import (
    Settings,
    istio_cluster_configuration,
)
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.crds import serve
from pergola.testing.waiting import PATIENCE, running, settled, until, until_gone
from pergola.testing.world import RecordingClient

INGRESS = {"gardener.cloud/role": "istio-ingress"}
EXPORT_TO = "networking.istio.io/exportTo"
MANAGED_BY = "resources.gardener.cloud/managed-by"
EXAMPLE = Path(__file__).parents[4] / "examples" / "istio-cluster-configuration"


def documents(file: str) -> list[JsonObject]:
    """Return the objects of a file of the example."""
    found = parse_documents((EXAMPLE / file).read_text())
    return [document.value for document in found if isinstance(document.value, dict)]


def unit(client: Client) -> Unit:
    """Return the controller."""
    return istio_cluster_configuration(client, Settings(), metrics=Metrics())


@pytest.fixture
async def istio(lone_client: Client) -> AsyncIterator[Client]:
    """Yield a client of the cluster with Istio's kinds, but without any of their objects."""
    await serve(lone_client, *documents("1-crds.yaml"))
    selector = ",".join(f"{key}={value}" for key, value in INGRESS.items())
    for namespace in await lone_client.list(NAMESPACE, labels=selector, metadata_only=True):
        unlabelled: JsonObject = {"metadata": {"labels": dict.fromkeys(INGRESS)}}
        await lone_client.patch(NAMESPACE, Key.of(namespace), unlabelled)
    yield lone_client
    for gvk in (DESTINATION_RULE, ENVOY_FILTER):
        for obj in await lone_client.list(gvk, metadata_only=True):
            await lone_client.delete(gvk, Key.of(obj))


async def is_served(client: Client, gvk: GroupVersionKind) -> bool:
    """Return whether the API server serves a kind."""
    try:
        await client.list(gvk)
    except KubeError:
        return False
    return True


@pytest.fixture
async def gateways(istio: Client) -> AsyncIterator[str]:
    """Yield a namespace with ingress gateways."""
    name = f"ingress-{secrets.token_hex(4)}"
    await put_namespace(istio, name, INGRESS)
    yield name
    await istio.delete(NAMESPACE, Key("", name))


async def put_namespace(client: Client, name: str, labels: JsonObject) -> None:
    """Create a namespace."""
    metadata = {"name": name, "labels": labels}
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


async def put_service(
    client: Client, namespace: str, name: str = "api", exported: str = "*", port: int = 443
) -> None:
    """Create a Service."""
    metadata = {"name": name, "namespace": namespace, "annotations": {EXPORT_TO: exported}}
    spec = {"ports": [{"port": port}]}
    await client.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})


async def put_rule(
    client: Client, namespace: str, name: str = "api", exported: str = "*", **policy: object
) -> None:
    """Create a DestinationRule for the Service of the same name."""
    spec = {
        "host": name,
        "exportTo": [exported],
        "trafficPolicy": {"connectionPool": {"http": policy}},
    }
    await client.create(
        {
            "apiVersion": DESTINATION_RULE.api_version,
            "kind": DESTINATION_RULE.kind,
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        }
    )


def clusters(envoy_filter: JsonObject) -> list[str]:
    """Return the names of the clusters that an EnvoyFilter patches."""
    return [p["match"]["cluster"]["name"] for p in envoy_filter["spec"]["configPatches"]]


def key(gateways: str, source: str) -> Key:
    """Return the key of the EnvoyFilter for a source namespace."""
    return Key(gateways, f"{source}-cluster-configuration")


async def test_an_envoy_filter_is_written_once_and_follows_its_sources(
    istio: Client, recorder: RecordingClient, gateways: str, fresh: str
) -> None:
    await put_service(istio, fresh)
    await put_rule(istio, fresh)
    where = key(gateways, fresh)
    async with running(working := unit(recorder)):
        found = await until(istio, ENVOY_FILTER, where, lambda _: True)
        await settled(working, istio)
        assert recorder.taken() == [f"create EnvoyFilter {where}"]
        assert clusters(found) == [f"outbound|443||api.{fresh}.svc.cluster.local"]
        assert labels_of(found)[MANAGED_BY] == "istio-cluster-configuration"
        (owner,) = found["metadata"]["ownerReferences"]
        source = await istio.get(NAMESPACE, Key("", fresh))
        assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == (
            "Namespace",
            fresh,
            uid_of(source),
            True,
        )

        ports = [{"port": 443, "name": "a"}, {"port": 80, "name": "http2-b"}]
        await istio.patch(SERVICE, Key(fresh, "api"), {"spec": {"ports": ports}})
        await until(istio, ENVOY_FILTER, where, lambda f: len(clusters(f)) == 2)

        policy = {"connectionPool": {"http": {"useClientProtocol": True}}}
        await istio.patch(DESTINATION_RULE, Key(fresh, "api"), {"spec": {"trafficPolicy": policy}})
        await until(
            istio,
            ENVOY_FILTER,
            where,
            lambda f: all(
                "typed_extension_protocol_options" in p["patch"]["value"]
                for p in f["spec"]["configPatches"]
            ),
        )
        await settled(working, istio)
        assert recorder.taken() == [f"patch EnvoyFilter {where}"] * 2

        await istio.patch(
            DESTINATION_RULE, Key(fresh, "api"), {"spec": {"subsets": [{"name": "v1"}]}}
        )
        await until_gone(istio, ENVOY_FILTER, where)
        await settled(working, istio)
        assert recorder.taken() == [f"delete EnvoyFilter {where}"]


async def test_a_restart_writes_nothing(
    istio: Client, recorder: RecordingClient, gateways: str, fresh: str
) -> None:
    await put_service(istio, fresh)
    await put_rule(istio, fresh)
    async with running(unit(recorder)):
        await until(istio, ENVOY_FILTER, key(gateways, fresh), lambda _: True)
    recorder.taken()
    async with running(working := unit(recorder)):
        await settled(working, istio)
        assert recorder.taken() == []


async def test_only_gateways_to_which_rule_and_service_are_exported_get_a_filter(
    istio: Client, recorder: RecordingClient, gateways: str, fresh: str
) -> None:
    await put_service(istio, fresh, exported="elsewhere")
    await put_rule(istio, fresh)
    where = key(gateways, fresh)
    async with running(working := unit(recorder)):
        await settled(working, istio)
        assert recorder.taken() == []
        exported = {"metadata": {"annotations": {EXPORT_TO: f"elsewhere,{gateways}"}}}
        await istio.patch(SERVICE, Key(fresh, "api"), exported)
        await until(istio, ENVOY_FILTER, where, lambda _: True)
        await istio.patch(DESTINATION_RULE, Key(fresh, "api"), {"spec": {"exportTo": ["~"]}})
        await until_gone(istio, ENVOY_FILTER, where)


async def test_a_service_that_is_created_later_and_deleted_is_noticed(
    istio: Client, recorder: RecordingClient, gateways: str, fresh: str
) -> None:
    await put_rule(istio, fresh)
    where = key(gateways, fresh)
    async with running(working := unit(recorder)):
        await settled(working, istio)
        assert recorder.taken() == []
        await put_service(istio, fresh)
        await until(istio, ENVOY_FILTER, where, lambda _: True)
        await istio.delete(SERVICE, Key(fresh, "api"))
        await until_gone(istio, ENVOY_FILTER, where)


async def test_a_namespace_can_start_and_stop_having_gateways(
    istio: Client, recorder: RecordingClient, fresh: str, other: str
) -> None:
    await put_service(istio, fresh)
    await put_rule(istio, fresh)
    where = key(other, fresh)
    async with running(working := unit(recorder)):
        await settled(working, istio)
        assert recorder.taken() == []
        exposure = "handler.exposureclass.gardener.cloud/name"
        labelled: JsonObject = {"metadata": {"labels": {exposure: "internet"}}}
        await istio.patch(NAMESPACE, Key("", other), labelled)
        await until(istio, ENVOY_FILTER, where, lambda _: True)
        labelled["metadata"]["labels"][exposure] = None
        await istio.patch(NAMESPACE, Key("", other), labelled)
        await until_gone(istio, ENVOY_FILTER, where)


async def test_only_the_filter_of_a_source_deleted_during_an_outage_is_deleted(
    istio: Client, recorder: RecordingClient, gateways: str, fresh: str
) -> None:
    await put_service(istio, fresh)
    await put_rule(istio, fresh)
    where = key(gateways, fresh)
    async with running(unit(recorder)):
        await until(istio, ENVOY_FILTER, where, lambda _: True)
    await istio.delete(DESTINATION_RULE, Key(fresh, "api"))
    foreign = Key(gateways, "foreign-cluster-configuration")
    await istio.create(
        {
            "apiVersion": ENVOY_FILTER.api_version,
            "kind": ENVOY_FILTER.kind,
            "metadata": {"name": foreign.name, "namespace": foreign.namespace},
        }
    )
    recorder.taken()
    async with running(working := unit(recorder)):
        await until_gone(istio, ENVOY_FILTER, where)
        await settled(working, istio)
        assert recorder.taken() == [f"delete EnvoyFilter {where}"]
    await istio.get(ENVOY_FILTER, foreign)


async def test_the_filter_of_a_source_that_is_being_deleted_is_left_to_its_owner(
    istio: Client, recorder: RecordingClient, gateways: str
) -> None:
    source = f"source-{secrets.token_hex(4)}"
    await put_namespace(istio, source, {})
    await put_service(istio, source)
    await put_rule(istio, source)
    where = key(gateways, source)
    async with running(working := unit(recorder)):
        await until(istio, ENVOY_FILTER, where, lambda _: True)
        assert not await istio.delete(NAMESPACE, Key("", source))
        await settled(working, istio)
        recorder.taken()
        await istio.delete(ENVOY_FILTER, where)  # as the garbage collector does
        await settled(working, istio)
        assert recorder.taken() == []


@pytest.mark.parametrize(
    "edit",
    [
        {"spec": {"configPatches": []}},
        {"spec": {"workloadSelector": {"labels": {"a": "b"}}}},
        {"metadata": {"labels": {MANAGED_BY: None}}},
        {"metadata": {"ownerReferences": []}},
    ],
    ids=["patches", "selector", "label", "owner"],
)
async def test_manual_edits_are_reverted(
    istio: Client, recorder: RecordingClient, gateways: str, fresh: str, edit: JsonObject
) -> None:
    await put_service(istio, fresh)
    await put_rule(istio, fresh)
    where = key(gateways, fresh)
    async with running(working := unit(recorder)):
        before = await until(istio, ENVOY_FILTER, where, lambda _: True)
        await settled(working, istio)
        await istio.patch(ENVOY_FILTER, where, edit)
        await until(istio, ENVOY_FILTER, where, lambda f: content(f) == content(before))
        await settled(working, istio)
        assert content(await istio.get(ENVOY_FILTER, where)) == content(before)


async def test_a_foreign_envoy_filter_is_not_overwritten(
    istio: Client, recorder: RecordingClient, gateways: str, fresh: str
) -> None:
    where = key(gateways, fresh)
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "somebody",
        "uid": "1",
        "controller": True,
    }
    theirs = await istio.create(
        {
            "apiVersion": ENVOY_FILTER.api_version,
            "kind": ENVOY_FILTER.kind,
            "metadata": {
                "name": where.name,
                "namespace": where.namespace,
                "ownerReferences": [owner],
            },
        }
    )
    await put_service(istio, fresh)
    await put_rule(istio, fresh)
    async with running(unit(recorder)):
        async with asyncio.timeout(PATIENCE):
            while not getattr(recorder, "writes", []):
                await istio.get_raw("/version")
        assert set(recorder.taken()) == {f"create EnvoyFilter {where}"}
    assert await istio.get(ENVOY_FILTER, where) == theirs


async def test_the_example_does_what_its_readme_says(
    istio: Client, recorder: RecordingClient
) -> None:
    for obj in documents("2-gateway-and-api-server.yaml"):
        await istio.apply(obj, manager="tests")
    where = Key("example-istio-ingress", "example-shoot-cluster-configuration")
    readme = (EXAMPLE / "README.md").read_text()
    async with running(unit(recorder)):
        found = await until(istio, ENVOY_FILTER, where, lambda _: True)
        assert len(clusters(found)) == 2
        for name in clusters(found):
            assert f"  name: {name}\n" in readme
        values = [patch["patch"]["value"] for patch in found["spec"]["configPatches"]]
        assert [v["per_connection_buffer_limit_bytes"] for v in values] == [32768, 32768]
        assert ["typed_extension_protocol_options" in v for v in values] == [False, True]
        hidden = {"metadata": {"annotations": {EXPORT_TO: "~"}}}
        await istio.patch(SERVICE, Key("example-shoot", "kube-apiserver"), hidden)
        await until_gone(istio, ENVOY_FILTER, where)


def content(envoy_filter: JsonObject) -> tuple[object, ...]:
    """Return the relevant parts of an EnvoyFilter."""
    metadata = envoy_filter["metadata"]
    return metadata.get("labels"), metadata.get("ownerReferences"), envoy_filter["spec"]
