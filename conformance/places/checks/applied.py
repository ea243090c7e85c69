"""Checks of what controllers apply."""

import base64
from dataclasses import replace
from typing import Final

from conformance.places.checks.managed import (
    MANAGED_RESOURCE,
    config_map,
    create,
    deployment,
    is_good,
    served_class,
)
from conformance.places.checks.setting import TEAM
from conformance.places.place import PATIENCE, SYSTEM, Check, Site
from pergola.api.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    ENVOY_FILTER,
    NETWORK_POLICY,
    NODE,
    SECRET,
)
from pergola.api.objects import JsonObject, Key, annotations_of, map_at, maps_at
from pergola.kube.client import Client
from pergola.kube.credentials import StaticToken
from pergola.manifests import manifest
from pergola.testing.waiting import until, until_gone

OWN: Final = "shoot-core-gardener-resource-manager"
ORIGIN: Final = "resources.gardener.cloud/origin"
_DELAY: Final = "node-agent.gardener.cloud/reconciliation-delay"
_TAINT: Final = "node.gardener.cloud/critical-components-not-ready"
_TOKEN: Final = "serviceaccount.resources.gardener.cloud"  # noqa: S105 - a prefix of annotations
_ACCOUNT: Final = "places"
_POLICIES: Final = "networking.resources.gardener.cloud/"


async def _applies(site: Site) -> None:
    source, target = site.source.client, site.target.client
    foreign = await create(site, "foreign", "other", config_map(site, "foreign"))
    objects = config_map(site, "served"), deployment(site, "served")
    key = await create(site, "served", served_class(site), *objects)
    await until(source, MANAGED_RESOURCE, key, is_good, patience=PATIENCE)
    for kind in (CONFIG_MAP, DEPLOYMENT):
        found = await target.get(kind, Key(site.namespace, "served"))
        origin = annotations_of(found)[ORIGIN]
        assert origin.endswith(f"{key.namespace}/{key.name}"), f"the origin is {origin}"
    other = await source.get(MANAGED_RESOURCE, foreign)
    assert not map_at(other, "status"), "a ManagedResource of another class has a status"


async def _prunes(site: Site) -> None:
    source, target = site.source.client, site.target.client
    key = await create(site, "pruned", served_class(site), config_map(site, "pruned"))
    await until(source, MANAGED_RESOURCE, key, is_good, patience=PATIENCE)
    await source.delete(MANAGED_RESOURCE, key)
    await until_gone(source, MANAGED_RESOURCE, key, patience=PATIENCE)
    await until_gone(target, CONFIG_MAP, Key(site.namespace, "pruned"), patience=PATIENCE)


async def _registers(site: Site) -> None:
    key = Key(site.place.namespace, OWN)
    await until(site.source.client, MANAGED_RESOURCE, key, is_good, patience=PATIENCE)


async def _gives_access(site: Site) -> None:
    key = Key(site.place.namespace, "shoot-access-places")
    labels = {
        "resources.gardener.cloud/purpose": "token-requestor",
        "resources.gardener.cloud/class": "shoot",
    }
    annotations = {f"{_TOKEN}/name": _ACCOUNT, f"{_TOKEN}/namespace": SYSTEM}
    await site.source.client.create(
        manifest(
            "v1",
            "Secret",
            key.name,
            namespace=key.namespace,
            labels=labels,
            annotations=annotations,
        )
    )
    secret = await until(site.source.client, SECRET, key, _has_token, patience=PATIENCE)
    token = base64.b64decode(secret["data"]["token"]).decode()
    config = replace(site.target.config, credentials=StaticToken(token))
    review = manifest("authentication.k8s.io/v1", "SelfSubjectReview", "")
    review["metadata"] = {}
    async with Client.connect(config) as holder:
        answer = await holder.create(review)
    user = map_at(answer, "status", "userInfo").get("username")
    assert user == f"system:serviceaccount:{SYSTEM}:{_ACCOUNT}", f"the token is of {user}"


def _has_token(secret: JsonObject) -> bool:
    return "token" in map_at(secret, "data")


async def _opens_its_ports(site: Site) -> None:
    client, name = site.target.client, site.place.deployment
    key = Key(site.place.namespace, f"ingress-to-{name}-tcp-8080")
    await client.create(
        manifest(
            "v1",
            "Pod",
            "caller",
            namespace=key.namespace,
            labels={f"{_POLICIES}to-{name}-tcp-8080": "allowed"},
            spec={
                "serviceAccountName": name,
                "containers": [{"name": "app", "image": "registry.example/app:1"}],
            },
        )
    )
    await until(client, NETWORK_POLICY, key, lambda _: True, patience=PATIENCE)


async def _opens_ports_of_a_team(site: Site) -> None:
    client, namespace = site.target.client, "team"
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    await client.create(manifest("v1", "Namespace", namespace, labels=TEAM))
    world = {f"{_POLICIES}from-world-to-ports": "[]"}
    service = manifest("v1", "Service", "web", namespace=namespace, annotations=world, spec=spec)
    await client.create(service)
    key = Key(namespace, "ingress-to-web-from-world")
    await until(client, NETWORK_POLICY, key, lambda _: True, patience=PATIENCE)


async def _configures_gateways(site: Site) -> None:
    client, ingress, source = site.target.client, "istio-ingress", site.namespace
    role = {"gardener.cloud/role": "istio-ingress"}
    exported = {"networking.istio.io/exportTo": "*"}
    for obj in (
        manifest("v1", "Namespace", ingress, labels=role),
        manifest(
            "v1",
            "Service",
            "api",
            namespace=source,
            annotations=exported,
            spec={"ports": [{"port": 443}]},
        ),
        manifest(
            "networking.istio.io/v1beta1",
            "DestinationRule",
            "api",
            namespace=source,
            spec={"host": "api", "exportTo": ["*"], "trafficPolicy": {"connectionPool": {}}},
        ),
    ):
        await client.create(obj)
    key = Key(ingress, f"{source}-cluster-configuration")
    await until(client, ENVOY_FILTER, key, lambda _: True, patience=PATIENCE)


async def _opens_nodes(site: Site) -> None:
    client = site.target.client
    spec = {"taints": [{"key": _TAINT, "effect": "NoSchedule"}]}
    await client.create(manifest("v1", "Node", "fresh", spec=spec))

    def is_open(node: JsonObject) -> bool:
        return all(taint["key"] != _TAINT for taint in maps_at(node, "spec", "taints"))

    await until(client, NODE, Key("", "fresh"), is_open, patience=PATIENCE)


async def _delays_agents(site: Site) -> None:
    for node in await site.target.client.list(NODE, metadata_only=True):
        await until(
            site.target.client,
            NODE,
            Key.of(node),
            lambda found: _DELAY in annotations_of(found),
            patience=PATIENCE,
        )


MANAGED_RESOURCES: Final = Check(
    "applied", "a ManagedResource of its class, and of no other", _applies
)
PRUNED: Final = Check("applied", "the deletion of a ManagedResource", _prunes)
OWN_RESOURCES: Final = Check("applied", "the webhooks that the original registers", _registers)
ACCESS: Final = Check("applied", "a token for a ServiceAccount of the target", _gives_access)
NETWORK_POLICIES: Final = Check(
    "applied", "NetworkPolicies for the Service that the original deploys", _opens_its_ports
)
TEAM_POLICIES: Final = Check(
    "applied", "NetworkPolicies in the namespaces of a team", _opens_ports_of_a_team
)
GATEWAYS: Final = Check("applied", "an EnvoyFilter for a DestinationRule", _configures_gateways)
NODES: Final = Check("applied", "a Node opens when its critical components run", _opens_nodes)
DELAYS: Final = Check("applied", "delays of node agents", _delays_agents)
