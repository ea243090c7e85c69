"""`pergola crds`: the CustomResourceDefinitions, printed or installed."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cyclopts import App

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.kube.client import Client

_FIELD_MANAGER: Final = "pergola-crds"
_LONGEST_WATCH: Final = 240

app: Final = App(
    name="crds",
    help="Print the CustomResourceDefinitions of Pergola's API, or install them in a cluster.",
    help_format="plaintext",
)


class CrdsError(Exception):
    """The API server does not serve an installed kind; the text names it."""


@app.default
def crds(
    *,
    apply: bool = False,
    kubeconfig: Path | None = None,
    context: str | None = None,
    timeout: float = 60.0,
) -> None:
    """Print the CustomResourceDefinitions of Pergola's API, or install them in a cluster.

    Prints YAML for `kubectl apply -f -`; the same version prints the same bytes.

    Parameters
    ----------
    apply
        Install them in a cluster instead, and return once it serves them.
    kubeconfig
        Kubeconfig of the cluster; by default found as by kubectl.
    context
        Context of that kubeconfig.
    timeout
        Seconds to wait until the cluster serves them.
    """
    if apply:
        asyncio.run(_apply(kubeconfig, context, timeout))
    else:
        print(rendered(definitions()), end="")


def definitions() -> list["JsonObject"]:
    """Return all CustomResourceDefinitions of Pergola."""
    from pergola.api.bastion_v1alpha1 import bastion_crd
    from pergola.api.extensions_v1alpha1 import cluster_crd, network_crd
    from pergola.api.infrastructure_v1alpha1 import infrastructure_crd
    from pergola.api.operator_v1alpha1 import extension_crd, garden_crd
    from pergola.api.resources_v1alpha1 import managed_resource_crd

    return [
        managed_resource_crd(),
        cluster_crd(),
        network_crd(),
        infrastructure_crd(),
        bastion_crd(),
        garden_crd(),
        extension_crd(),
    ]


def rendered(objects: list["JsonObject"]) -> str:
    """Return one YAML document per object; equal objects give equal bytes."""
    from pergola.kube.yaml import dump

    return "".join(f"---\n{dump(obj)}" for obj in objects)


async def install(client: "Client", timeout: float = 60.0) -> None:
    """Apply all CustomResourceDefinitions, and return once the API server serves their kinds.

    Raises:
        CrdsError: A kind is not served within `timeout` seconds.
        KubeError: The API server refuses a request or is unreachable.
    """
    from pergola.api.objects import name_of

    applied = [
        await client.apply(definition, manager=_FIELD_MANAGER, force=True)
        for definition in definitions()
    ]
    try:
        async with asyncio.timeout(timeout):
            for crd in applied:
                await _established(client, crd)
    except TimeoutError:
        raise CrdsError(
            f"CustomResourceDefinition {name_of(crd)} is not served after {timeout:g}s; "
            f"run `kubectl describe crd {name_of(crd)}` to see why"
        ) from None


async def _apply(kubeconfig: Path | None, context: str | None, timeout: float) -> None:
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load

    async with Client.connect(load(kubeconfig, context)) as client:
        await install(client, timeout)
    for definition in definitions():
        print(f"{definition['metadata']['name']} is installed and served")


async def _established(client: "Client", crd: "JsonObject") -> None:
    """Wait until the API server serves the kind of `crd`, given its current state."""
    from pergola.api.objects import GroupVersionKind, Key
    from pergola.kube.errors import Gone

    gvk, key = GroupVersionKind.of(crd), Key.of(crd)
    while not is_established(crd):
        try:
            crd = await _next_state(client, crd)
        except Gone:
            crd = await client.get(gvk, key)


async def _next_state(client: "Client", crd: "JsonObject") -> "JsonObject":
    """Return the state after the next change, or the same after minutes without one."""
    from pergola.api.objects import GroupVersionKind, name_of, resource_version_of
    from pergola.kube.selectors import select_name
    from pergola.kube.watch import watch

    changes = watch(
        client,
        await client.resource(GroupVersionKind.of(crd)),
        fields=select_name(name_of(crd)),
        resource_version=resource_version_of(crd),
        timeout_seconds=_LONGEST_WATCH,
    )
    async with aclosing(changes):
        async for change in changes:
            if change.type in ("ADDED", "MODIFIED"):
                return change.object
    return crd


def is_established(crd: "JsonObject") -> bool:
    """Return whether the API server serves the kind."""
    from pergola.api.conditions import get_condition
    from pergola.api.objects import maps_at

    condition = get_condition(maps_at(crd, "status", "conditions"), "Established") or {}
    return condition.get("status") == "True"
