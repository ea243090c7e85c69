"""Facts about Kubernetes, compared with the real API server of the tests."""

import re

import orjson

from pergola.api.known.kubernetes_apis import is_unknown_resource, versions_of_api
from pergola.api.known.kubernetes_feature_gates import is_known, kubernetes_feature_gate
from pergola.api.known.kubernetes_versions import Version, parse_version, tabled
from pergola.kube.client import Client

NOT_SWITCHABLE = (
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
)
FEATURE = re.compile(r'^kubernetes_feature_enabled\{name="(\w+)"', re.MULTILINE)


async def version_of(client: Client) -> Version:
    version = parse_version(orjson.loads(await client.get_raw("/version"))["gitVersion"])
    assert version is not None
    return version


async def test_every_feature_gate_of_the_api_server_is_known(runtime: Client) -> None:
    version = await version_of(runtime)
    names = FEATURE.findall((await runtime.get_raw("/metrics")).decode())

    gates = {name: kubernetes_feature_gate(name) for name in names}

    assert len(gates) > 100
    assert [name for name, gate in gates.items() if not gate or not is_known(gate, version)] == []


async def test_every_api_group_version_of_the_api_server_is_known(runtime: Client) -> None:
    version = await version_of(runtime)
    served = ["v1"]
    for group in orjson.loads(await runtime.get_raw("/apis"))["groups"]:
        if group["name"].endswith("gardener.cloud") or group["name"] in NOT_SWITCHABLE:
            continue
        served += [found["groupVersion"] for found in group["versions"]]

    for group_version in served:
        root = "/api/v1" if group_version == "v1" else f"/apis/{group_version}"
        listed = orjson.loads(await runtime.get_raw(root))["resources"]
        names = [resource["name"] for resource in listed if "/" not in resource["name"]]
        for api in (group_version, *(f"{group_version}/{name}" for name in names)):
            versions = versions_of_api(api)
            assert versions is not None, api
            assert tabled(version) in versions, api
        group = group_version.rpartition("/")[0]
        for name in names:
            resource = f"{name}.{group}" if group else name
            assert not is_unknown_resource(resource, version), resource
