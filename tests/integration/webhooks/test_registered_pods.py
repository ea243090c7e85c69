"""Webhooks that change objects, called by a real API server: spec 12 §2.2, §2.3, §5-§13."""

import pytest

from pergola.api import marks
from pergola.api.kinds import POD, SECRET, SERVICE, SERVICE_ACCOUNT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, map_at
from pergola.kube.errors import Forbidden, NotFound
from pergola.resource_manager.controllers.token_invalidator import Settings, token_invalidator
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import running, settled, until
from tests.support.webhook_site import AUTOSCALER, HOME, ROLES, WebhookSite, effects, pod

EVERYWHERE = {"scheduler", "host"}
EVERYTHING = {"token", "scheduler", "seccomp", "host", "balancing", "system", "spread"}
IN_TARGET = EVERYTHING - {"balancing"}
SKIPS = {
    "token": "projected-token-mount.resources.gardener.cloud/skip",
    "seccomp": "seccompprofile.resources.gardener.cloud/skip",
    "system": "system-components-config.resources.gardener.cloud/skip",
    "spread": "topology-spread-constraints.resources.gardener.cloud/skip",
}
INJECT = "apiserver-proxy.networking.gardener.cloud/inject"
ENDPOINT_SLICE = GroupVersionKind("discovery.k8s.io", "v1", "EndpointSlice")
CONSIDER = "token-invalidator.resources.gardener.cloud/consider"
PURPOSE = "resources.gardener.cloud/purpose"
INVALID = "AAAA"


async def place(site: WebhookSite, **labels: str) -> str:
    """Create a namespace with the labels of a Shoot's, and all objects that webhooks read."""
    name = await site.add_namespace(**(ROLES | labels))
    await furnish(site, name)
    return name


async def furnish(site: WebhookSite, namespace: str) -> None:
    """Add a ServiceAccount without automounting, and a gateway to the API server."""
    await site.add_account(namespace, "quiet", automount=False)
    for obj in (
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "istio-internal-load-balancing", "namespace": namespace},
            "data": {"hosts": "api.a,api.b", "istio-namespace": namespace},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "istio-ingressgateway-internal", "namespace": namespace},
            "spec": {"ports": [{"port": 443}]},
        },
    ):
        await site.client.apply(obj, manager="pergola-testing")


async def admitted(
    site: WebhookSite, namespace: str, labels: dict[str, str] | None = None
) -> set[str]:
    """Return the webhooks that change a pod in the namespace."""
    obj = pod(namespace, "web", labels=labels, account="quiet")
    return effects(await site.client.create(obj, dry_run=True))


async def test_a_pod_of_a_control_plane_is_changed_by_each_webhook(runtime: WebhookSite) -> None:
    namespace = await place(runtime)
    created = await runtime.client.create(pod(namespace, "web", account="quiet"))
    assert effects(created) == EVERYTHING
    assert effects(await runtime.client.get(POD, Key(namespace, "web"))) == EVERYTHING
    (aliases,) = created["spec"]["hostAliases"]
    assert aliases["hostnames"] == ["api.a", "api.b"]


async def test_a_dry_run_gets_the_same_answer_and_stores_nothing(runtime: WebhookSite) -> None:
    namespace = await place(runtime)
    assert await admitted(runtime, namespace) == EVERYTHING
    assert await runtime.client.list(POD, namespace) == []


async def test_in_other_namespaces_only_webhooks_for_all_namespaces_are_called(
    runtime: WebhookSite,
) -> None:
    namespace = await runtime.add_namespace()
    await furnish(runtime, namespace)
    assert await admitted(runtime, namespace) == EVERYWHERE


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        ({marks.ROLE: "garden"}, {"balancing"}),
        ({"system-components-config.resources.gardener.cloud/consider": "false"}, {"system"}),
        ({INJECT: "disable"}, {"host"}),
        ({INJECT: "enable"}, set()),
    ],
)
async def test_the_labels_of_a_namespace_select_webhooks(
    runtime: WebhookSite, labels: dict[str, str], missing: set[str]
) -> None:
    assert await admitted(runtime, await place(runtime, **labels)) == EVERYTHING - missing


async def test_the_labels_of_a_pod_select_webhooks(runtime: WebhookSite) -> None:
    namespace = await place(runtime)
    for name, skip in SKIPS.items():
        for value in ("true", "false", ""):  # only their presence matters
            assert await admitted(runtime, namespace, {skip: value}) == EVERYTHING - {name}
    assert await admitted(runtime, namespace, {INJECT: "disable"}) == EVERYTHING - {"host"}
    assert await admitted(runtime, namespace, {"static-pod": "true"}) == set()
    assert await admitted(runtime, namespace, {"static-pod": "false"}) == EVERYTHING


async def test_pods_of_the_resource_manager_are_excluded_by_name(runtime: WebhookSite) -> None:
    own = {"app": "gardener-resource-manager"}
    found = await admitted(runtime, await place(runtime), own)
    assert found == EVERYWHERE | {"balancing"}


async def test_in_a_target_system_namespaces_are_selected(target: WebhookSite) -> None:
    await furnish(target, "kube-system")
    assert await admitted(target, "kube-system") == IN_TARGET
    other = await place(target)
    assert await admitted(target, other) == EVERYWHERE | {"balancing"}


async def test_in_a_target_the_placement_of_foreign_pods_is_not_changed(
    target: WebhookSite,
) -> None:
    await furnish(target, "kube-system")
    found = await admitted(target, "kube-system", {marks.MANAGED_BY: "somebody"})
    assert found == IN_TARGET - {"system", "spread"}
    own = await admitted(target, "kube-system", {"app": "gardener-resource-manager"})
    assert own == EVERYWHERE


async def test_pods_of_daemon_sets_stay_on_their_nodes(runtime: WebhookSite) -> None:
    obj = pod(await place(runtime), "web", account="quiet")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1"}
    obj["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    created = await runtime.client.create(obj, dry_run=True)
    assert effects(created) == EVERYTHING - {"system"}


async def test_a_service_account_that_was_created_just_before_the_pod_is_found(
    runtime: WebhookSite,
) -> None:
    namespace = await place(runtime)
    for number in range(10):
        name = f"new-{number}"
        await runtime.add_account(namespace, name, automount=False)
        obj = pod(namespace, "web", account=name)
        assert "token" in effects(await runtime.client.create(obj, dry_run=True))


async def test_a_refusal_names_the_webhook_and_the_pod_is_not_created(runtime: WebhookSite) -> None:
    namespace = await place(runtime)
    obj = pod(namespace, "web", account="quiet")
    expiration = "projected-token-mount.resources.gardener.cloud/expiration-seconds"
    obj["metadata"]["annotations"] = {expiration: "abc"}
    with pytest.raises(Forbidden, match=r"projected-token-mount.*abc"):
        await runtime.client.create(obj)
    assert await runtime.client.list(POD, namespace) == []
    obj["metadata"]["annotations"] = {expiration: "8998"}
    created = await runtime.client.create(obj)
    volume = next(v for v in created["spec"]["volumes"] if v["name"].endswith("-gardener"))
    assert volume["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 8998


async def test_pods_that_need_a_missing_gateway_are_refused(runtime: WebhookSite) -> None:
    namespace = await place(runtime)
    service = SERVICE
    await runtime.client.delete(service, Key(namespace, "istio-ingressgateway-internal"))
    obj = pod(namespace, "web", account="quiet")
    with pytest.raises(
        NotFound, match=r'denied the request: services "istio-ingressgateway-internal" not found'
    ):
        await runtime.ask("POST", POD, Key(namespace, ""), obj)
    assert await runtime.client.list(POD, namespace) == []


# EndpointSlices and autoscalers


def endpoints(namespace: str, **labels: str) -> JsonObject:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "web", "namespace": namespace, "labels": labels},
        "addressType": "IPv4",
        "endpoints": [
            {"addresses": ["10.1.2.3"], "zone": "a", "hints": {"forZones": [{"name": "b"}]}},
            {"addresses": ["10.1.2.4"]},
        ],
        "ports": [],
    }


def hints(slice_: JsonObject) -> list[JsonObject | None]:
    return [endpoint.get("hints") for endpoint in slice_["endpoints"]]


async def test_endpoints_get_hints_for_their_zones_whenever_they_are_written(
    runtime: WebhookSite,
) -> None:
    namespace = await runtime.add_namespace(**ROLES)
    hinted = [{"forZones": [{"name": "a"}]}, None]
    consider = {"endpoint-slice-hints.resources.gardener.cloud/consider": "true"}
    created = await runtime.client.create(endpoints(namespace, **consider))
    assert hints(created) == hinted
    created["endpoints"][0]["hints"] = {"forZones": [{"name": "c"}]}
    assert hints(await runtime.client.update(created)) == hinted


async def test_endpoints_of_services_without_the_label_are_not_changed(
    runtime: WebhookSite,
) -> None:
    namespace = await runtime.add_namespace(**ROLES)
    obj = endpoints(namespace)
    assert hints(await runtime.client.create(obj)) == hints(obj)


@pytest.mark.parametrize(
    ("mode", "labels", "result"),
    [
        (None, {}, "InPlaceOrRecreate"),
        ("Auto", {}, "InPlaceOrRecreate"),
        ("Recreate", {}, "InPlaceOrRecreate"),
        ("Initial", {}, "Initial"),
        ("Off", {}, "Off"),
        ("Auto", {"vpa-in-place-updates.resources.gardener.cloud/skip": ""}, "Auto"),
    ],
)
async def test_autoscalers_are_set_to_resize_pods_in_place(
    runtime: WebhookSite, mode: str | None, labels: dict[str, str], result: str
) -> None:
    policy = {"minReplicas": 2} | ({"updateMode": mode} if mode else {})
    obj = {
        "apiVersion": AUTOSCALER.api_version,
        "kind": AUTOSCALER.kind,
        "metadata": {"name": "web", "namespace": HOME, "labels": labels},
        "spec": {"updatePolicy": policy},
    }
    created = await runtime.client.create(obj, dry_run=True)
    assert created["spec"]["updatePolicy"] == {"minReplicas": 2, "updateMode": result}
    mutated = "vpa-in-place-updates.resources.gardener.cloud/mutated" in labels_of(created)
    assert mutated == (result == "InPlaceOrRecreate")


# Token invalidator: the controller labels, the webhook overwrites (spec 11 §2.5)


def token_secret(namespace: str) -> JsonObject:
    annotations = {"kubernetes.io/service-account.name": "robot"}
    metadata = {"name": "robot-token", "namespace": namespace, "annotations": annotations}
    kind = "kubernetes.io/service-account-token"
    return {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata}


def is_valid(secret: JsonObject) -> bool:
    return map_at(secret, "data").get("token") not in (None, INVALID)


def is_invalid(secret: JsonObject) -> bool:
    return map_at(secret, "data").get("token") == INVALID and CONSIDER in labels_of(secret)


async def test_unused_tokens_are_overwritten_and_restored_on_demand(
    runtime: WebhookSite,
) -> None:
    client, namespace = runtime.client, await runtime.add_namespace(**ROLES)
    await runtime.add_account(namespace, "robot", automount=False)
    key, account = Key(namespace, "robot-token"), Key(namespace, "robot")
    await client.create(token_secret(namespace))
    first = await until(client, SECRET, key, is_valid)
    unit = token_invalidator(client, Settings(workers=2, namespaces=[namespace]), metrics=Metrics())
    async with running(unit):
        invalid = await until(client, SECRET, key, is_invalid)
        unchanged = {name: first["data"][name] for name in ("ca.crt", "namespace")}
        assert invalid["data"] == unchanged | {"token": INVALID}
        patched = await client.patch(SECRET, key, {"data": {"token": None}})
        assert is_invalid(patched)
        await client.delete(SECRET, key)
        await client.create(token_secret(namespace))
        await until(client, SECRET, key, is_invalid)
        skip = {"token-invalidator.resources.gardener.cloud/skip": "true"}
        await client.patch(SERVICE_ACCOUNT, account, {"metadata": {"labels": skip}})
        again = await until(client, SECRET, key, is_valid)
        assert CONSIDER not in labels_of(again)


async def test_automatically_mounted_tokens_are_kept_and_restored(
    runtime: WebhookSite,
) -> None:
    client, namespace = runtime.client, await runtime.add_namespace(**ROLES)
    await runtime.add_account(namespace, "robot", automount=True)
    key = Key(namespace, "robot-token")
    await client.create(token_secret(namespace))
    unit = token_invalidator(client, Settings(workers=2, namespaces=[namespace]), metrics=Metrics())
    async with running(unit):
        labelled = await until(
            client, SECRET, key, lambda obj: PURPOSE in labels_of(obj) and is_valid(obj)
        )
        assert CONSIDER not in labels_of(labelled)
        await runtime.add_account(namespace, "robot", automount=False)
        await client.patch(SECRET, key, {"metadata": {"annotations": {"touched": "1"}}})
        await until(client, SECRET, key, is_invalid)
        await runtime.add_account(namespace, "robot", automount=True)
        await client.patch(SECRET, key, {"metadata": {"annotations": {"touched": "2"}}})
        await until(client, SECRET, key, is_valid)


async def test_a_token_that_a_pod_mounts_is_overwritten_once_the_pod_is_deleted(
    runtime: WebhookSite,
) -> None:
    client, namespace = runtime.client, await runtime.add_namespace(**ROLES)
    await runtime.add_account(namespace, "robot", automount=False)
    key, user = Key(namespace, "robot-token"), Key(namespace, "user")
    obj = pod(namespace, "user")
    obj["spec"]["volumes"].append({"name": "token", "secret": {"secretName": "robot-token"}})
    await client.create(obj)
    await client.create(token_secret(namespace))
    await until(client, SECRET, key, is_valid)
    unit = token_invalidator(client, Settings(workers=2, namespaces=[namespace]), metrics=Metrics())
    async with running(unit):
        await until(client, SECRET, key, lambda obj: PURPOSE in labels_of(obj))
        await settled(unit, client)
        assert is_valid(await client.get(SECRET, key))
        await client.delete(POD, user)
        await until(client, SECRET, key, is_invalid)


async def test_other_secrets_are_not_changed(runtime: WebhookSite) -> None:
    namespace = await runtime.add_namespace(**ROLES)
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "plain", "namespace": namespace, "labels": {CONSIDER: "true"}},
        "data": {"token": "c29tZXRoaW5n"},
    }
    created = await runtime.client.create(secret, dry_run=True)
    assert created["data"] == secret["data"]
    secret["metadata"]["labels"][PURPOSE] = "token-invalidator"
    created = await runtime.client.create(secret, dry_run=True)
    assert created["data"] == {"token": INVALID}
    del secret["data"]
    assert "data" not in await runtime.client.create(secret, dry_run=True)
