"""CustomResourceDefinitions in a test cluster: Pergola's, and open ones for other kinds."""

import asyncio
import json

from pergola.api.bastion_v1alpha1 import bastion_crd
from pergola.api.extensions_v1alpha1 import cluster_crd, network_crd
from pergola.api.infrastructure_v1alpha1 import infrastructure_crd
from pergola.api.kinds import CRD
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at, name_of
from pergola.api.operator_v1alpha1 import extension_crd, garden_crd
from pergola.api.resources_v1alpha1 import managed_resource_crd
from pergola.api.schema import Object, crd
from pergola.garden.components.definitions import GROUPS, load
from pergola.kube.client import Client
from pergola.kube.definitions import set_up_storage
from pergola.kube.errors import ApiError, UnknownKind
from pergola.testing.waiting import PATIENCE, until_gone


def definition(
    gvk: GroupVersionKind,
    *,
    plural: str = "",
    scope: str = "Namespaced",
    has_status: bool = False,
) -> JsonObject:
    """Return a CustomResourceDefinition that takes anything.

    Args:
        plural: The kind in lower case with `s` or `es`, unless given.
        has_status: Whether the status is a subresource.
    """
    singular = gvk.kind.lower()
    plural = plural or (f"{singular}es" if singular.endswith("s") else f"{singular}s")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: JsonObject = {
        "name": gvk.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    if has_status:
        version["subresources"] = {"status": {}}
    metadata: JsonObject = {"name": f"{plural}.{gvk.group}"}
    if gvk.group.endswith(".k8s.io"):  # others may not define kinds there
        metadata["annotations"] = {"api-approved.kubernetes.io": "unapproved, of a test"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": gvk.group,
            "scope": scope,
            "names": {"plural": plural, "kind": gvk.kind},
            "versions": [version],
        },
    }


async def install_crds(client: Client) -> None:
    """Return when the ManagedResource API is served."""
    await serve(client, managed_resource_crd())


async def install_extension_crds(client: Client) -> None:
    """Return when ManagedResources, Clusters and our extension kinds are served."""
    await serve(
        client,
        managed_resource_crd(),
        network_crd(),
        cluster_crd(),
        infrastructure_crd(),
        bastion_crd(),
    )


async def install_operator_crds(client: Client) -> None:
    """Return when Gardens, the operator's Extensions and ManagedResources are served."""
    await serve(client, managed_resource_crd(), garden_crd(), extension_crd())


async def install_garden_extension_crds(client: Client) -> None:
    """Return when the extension kinds that a Garden uses are served."""
    await install_garden_crds(client, "extensions")


async def install_garden_crds(client: Client, *keys: str) -> None:
    """Return when the kinds in these groups of definitions are served."""
    desired = [crd for group in GROUPS if group.key in keys for crd in load(group)]
    await serve(client, *desired)


async def install_definitions(client: Client, *names: str) -> None:
    """Return when some kinds of other projects that a Garden uses are served.

    Args:
        names: of their CustomResourceDefinitions, such as `etcds.druid.gardener.cloud`.
    """
    groups = [group for group in GROUPS if group.names & {*names}]
    desired = [crd for group in groups for crd in load(group) if name_of(crd) in names]
    await serve(client, *desired)


async def install_kinds(client: Client, *kinds: type[Object]) -> None:
    """Return when the API server serves declared kinds; their definitions are applied if missing.

    Raises:
        TimeoutError: They are not served after three minutes.
        KubeError: The API server refused a definition.
    """
    await serve(client, *map(crd, kinds))


async def serve(client: Client, *definitions: JsonObject) -> None:
    """Apply the CustomResourceDefinitions that do not exist; return when their kinds are served.

    Raises:
        AssertionError: Another definition of a kind exists: what a test finds would depend on the
            tests before it.
    """
    for definition in definitions:
        live = await client.find(CRD, Key("", name_of(definition)))
        if live is None:
            await client.apply(definition, manager="pergola-testing", force=True)
        elif _defined(live) != _defined(definition):
            raise AssertionError(f"{name_of(definition)} is already defined otherwise")
    for definition in definitions:
        await served(client, gvk_of(definition))


def _defined(crd: JsonObject) -> list[tuple[str, bool, bool, int]]:
    """Return the versions of a kind: name, served, subresource `status`, size of the schema."""
    return [
        (
            version["name"],
            version["served"],
            "status" in map_at(version, "subresources"),
            len(json.dumps(map_at(version, "schema"))),
        )
        for version in maps_at(crd, "spec", "versions")
    ]


async def delete_definition(client: Client, key: Key) -> None:
    """Delete a CustomResourceDefinition with its instances, and return when it is gone.

    Raises:
        NotFound: There is none of this name.
    """
    await set_up_storage(client, await client.get(CRD, key))
    await client.delete(CRD, key)
    await until_gone(client, CRD, key)


async def served(client: Client, gvk: GroupVersionKind) -> None:
    """Return when a kind is served, which is a moment after its CRD says so."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.list(gvk, metadata_only=True)
            except (UnknownKind, ApiError):
                client.discovery.forget(gvk)
                await client.get_raw("/version")
            else:
                return


def is_established(crd: JsonObject) -> bool:
    """Return whether the API server serves the CRD."""
    conditions = {c.get("type"): c.get("status") for c in maps_at(crd, "status", "conditions")}
    return conditions.get("Established") == "True"


def gvk_of(crd: JsonObject) -> GroupVersionKind:
    """Return the kind of a definition, in the first version that it serves."""
    spec = map_at(crd, "spec")
    version = next(v["name"] for v in maps_at(spec, "versions") if v.get("served"))
    return GroupVersionKind(spec["group"], version, map_at(spec, "names")["kind"])
