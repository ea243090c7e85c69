"""What the probes of the resource manager depend on, and who hears what cannot be watched."""

import json
from pathlib import Path

import pytest

from pergola.api import marks
from pergola.api.managed_resource_conditions import APPLIED, APPLIED_MESSAGE
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse
from pergola.sandbox import Sandbox
from pergola.testing.world import World, message
from tests.support.resource_manager_process import eventually, get, only, running
from tests.support.service_accounts import request_token, until_granted

EVENT = GroupVersionKind("", "v1", "Event")
MANAGED_RESOURCES = {"apiGroups": ["resources.gardener.cloud"], "resources": ["managedresources"]}
SECRETS = {"apiGroups": [""], "resources": ["secrets"]}
CONFIG_MAPS = {"apiGroups": [""], "resources": ["configmaps"]}


async def allow(world: World, *watchable: JsonObject) -> None:
    """Let a ServiceAccount do everything, but list and watch only these resources."""
    rbac, name, account = "rbac.authorization.k8s.io", f"limited-{world.namespace}", "default"
    verbs = ["get", "create", "update", "patch", "delete"]
    role = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": verbs},
            *({**resources, "verbs": ["list", "watch"]} for resources in watchable),
        ],
    }
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": world.namespace}],
    }
    for obj in (role, binding):
        await world.client.apply(obj, manager="test", force=True)
    await until_granted(world.client, Key(world.namespace, account))


async def limited_kubeconfig(world: World, sandbox: Sandbox, folder: Path) -> Path:
    """Write a kubeconfig of the ServiceAccount."""
    parsed = parse(sandbox.kubeconfig.read_bytes())
    assert isinstance(parsed, dict)
    content: JsonObject = parsed
    token = await request_token(load(sandbox.kubeconfig), world.namespace, "default")
    content["users"][0]["user"] = {"token": token}
    path = folder / "limited.kubeconfig"
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("watchable", "missing"),
    [
        ([MANAGED_RESOURCES, SECRETS], ""),
        ([SECRETS], "managedresources"),
        ([MANAGED_RESOURCES], "secrets"),
    ],
)
async def test_only_managed_resources_and_secrets_make_a_process_unready(
    world: World, sandbox: Sandbox, tmp_path: Path, watchable: list[JsonObject], missing: str
) -> None:
    await allow(world, *watchable)
    config = only(
        world,
        await limited_kubeconfig(world, sandbox, tmp_path),
        controllers={"tokenRequestor": {"enabled": True}, "networkPolicy": {"enabled": True}},
    )
    async with running(config, tmp_path) as served:
        if missing:
            await eventually(served.health + "/readyz", 500, missing)
            return
        await eventually(served.health + "/readyz", 200)
        await eventually(served.health + "/readyz/target-informer-sync", 500)
        for path in ("/readyz", "/healthz"):
            assert (await get(served.health + path))[0] == 200


async def test_a_kind_that_cannot_be_watched_is_reported_until_it_can(
    world: World, sandbox: Sandbox, tmp_path: Path
) -> None:
    await allow(world, MANAGED_RESOURCES, SECRETS)
    config = only(world, await limited_kubeconfig(world, sandbox, tmp_path))
    async with running(config, tmp_path) as served:
        await world.create("demo", world.config_map("a"))
        reported = await world.healthy("demo")
        said = message(reported, APPLIED)
        assert "objects of kind v1/ConfigMap cannot be watched" in said
        assert 'cannot watch resource "configmaps"' in said
        series = 'pergola_kind_not_watched{kind="v1/ConfigMap"} 1.0'
        await eventually(served.metrics + "/metrics", 200, series)
        [event] = await world.client.list(
            EVENT, world.namespace, fields="reason=CannotWatch,involvedObject.name=demo"
        )
        assert event["message"] in said

        await allow(world, MANAGED_RESOURCES, SECRETS, CONFIG_MAPS)
        await eventually(served.metrics + "/metrics", 200, without=series)
        await world.edit("demo", {"metadata": {"annotations": {marks.OPERATION: "reconcile"}}})
        await world.until("demo", lambda resource: message(resource, APPLIED) == APPLIED_MESSAGE)
