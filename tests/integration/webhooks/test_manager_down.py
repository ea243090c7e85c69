"""A cluster whose webhooks are registered but not served: spec 12 §2.5 and 'Beyond' 8.

Objects that should be reviewed fail or pass as their entries say, and nothing else is blocked: not
the start of the resource manager or of a node, and not the work of other people.
"""

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

from pergola.admission.configurations import MUTATING, configuration_keys
from pergola.admission.inspection import entries
from pergola.api import marks
from pergola.api.kinds import CRD, POD
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.errors import ApiError
from pergola.resource_manager.serving import configuration_name, installation_of
from pergola.resource_manager.webhooks.deletion_protection import CR_NAME, CRD_NAME, PROTECTED
from pergola.resource_manager.webhooks.extension_validation.kinds import KINDS
from pergola.testing.crds import definition
from pergola.testing.waiting import PATIENCE
from tests.support.webhook_site import (
    AUTOSCALER,
    HOME,
    ROLES,
    WebhookSite,
    Where,
    effects,
    pod,
    valid,
)

SUFFIX = ".resources.gardener.cloud"
SKIPS = {
    "projected-token-mount": "projected-token-mount.resources.gardener.cloud/skip",
    "seccomp-profile": "seccompprofile.resources.gardener.cloud/skip",
    "system-components-config": "system-components-config.resources.gardener.cloud/skip",
    "pod-topology-spread-constraints": "topology-spread-constraints.resources.gardener.cloud/skip",
}
BALANCING = "pod-kube-apiserver-load-balancing"
IGNORED = {"pod-scheduler-name", "kubernetes-service-host"}
OWN = {"app": "gardener-resource-manager"}
GARDEN = ROLES | {marks.ROLE: "garden"}


async def go_down(site: WebhookSite, kind: Where) -> WebhookSite:
    """Register webhooks, and stop serving once the API server calls them."""
    async with site.serving(kind):
        await site.effective(lambda: site.mutates(HOME if kind == "runtime" else "kube-system"))
        if kind == "runtime":
            await site.effective(lambda: site.validates(HOME))
    return site


@pytest.fixture
async def runtime_down(site: WebhookSite) -> WebhookSite:
    return await go_down(site, "runtime")


@pytest.fixture
async def target_down(site: WebhookSite) -> WebhookSite:
    return await go_down(site, "target")


async def registered(site: WebhookSite, kind: Where) -> dict[str, JsonObject]:
    name = configuration_name(installation_of(site.configuration(kind)))
    found = []
    for gvk, key in configuration_keys(name):
        with suppress(ApiError):
            found.append(await site.client.get(gvk, key))
    return {name.removesuffix(SUFFIX): entry for name, entry in entries(found).items()}


def plain(api_version: str, kind: str, namespace: str = "", **fields: object) -> JsonObject:
    """Return an object with only its required fields."""
    metadata = {"generateName": "plain-"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def labelled(obj: JsonObject, **labels: str) -> JsonObject:
    obj["metadata"].setdefault("labels", {}).update(labels)
    return obj


def selected_by(entry: str, namespace: str) -> JsonObject:
    """Return a pod that all other webhooks of the namespace skip."""
    skips = {skip: "true" for name, skip in SKIPS.items() if name != entry}
    return pod(namespace, "web", labels=skips)


def endpoints(namespace: str) -> JsonObject:
    return plain(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        namespace,
        addressType="IPv4",
        endpoints=[],
        ports=[],
    )


def meant(namespace: str) -> dict[str, JsonObject]:
    """Return an object for each mutating entry that fails closed, which only that entry reviews."""
    consider = {"endpoint-slice-hints.resources.gardener.cloud/consider": "true"}
    secret = plain("v1", "Secret", namespace)
    purpose = {"resources.gardener.cloud/purpose": "token-invalidator"}
    return {
        **{entry: selected_by(entry, namespace) for entry in SKIPS},
        "token-invalidator": labelled(secret, **purpose),
        "endpoint-slice-hints": labelled(endpoints(namespace), **consider),
        "vpa-in-place-updates": plain(AUTOSCALER.api_version, AUTOSCALER.kind, namespace, spec={}),
    }


def harmless(namespace: str) -> list[JsonObject]:
    """Return objects that a cluster needs to start, and unrelated ones."""
    template = {"metadata": {"labels": OWN}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    workload = {"selector": {"matchLabels": OWN}, "template": template}
    skips = dict.fromkeys(SKIPS.values(), "true")
    return [
        pod(namespace, "own", labels=OWN),
        pod(namespace, "own-as-deployed", labels=OWN | skips),
        pod(namespace, "static", labels={"static-pod": "true"}),
        pod("default", "of-others"),
        plain("apps/v1", "Deployment", namespace, spec=workload),
        plain("apps/v1", "ReplicaSet", namespace, spec=workload),
        plain("coordination.k8s.io/v1", "Lease", namespace, spec={"holderIdentity": "me"}),
        plain("v1", "Secret", namespace, data={"token": "AAAA"}),
        plain("v1", "ConfigMap", namespace),
        plain("v1", "ServiceAccount", namespace),
        plain("v1", "Service", namespace, spec={"ports": [{"port": 443}]}),
        plain("v1", "Node"),
        plain("v1", "Namespace"),
        plain("rbac.authorization.k8s.io/v1", "ClusterRole", rules=[]),
        plain(AUTOSCALER.api_version, AUTOSCALER.kind, "default", spec={}),
        endpoints(namespace),
    ]


async def refusal(site: WebhookSite, obj: JsonObject) -> str | None:
    """Return the webhook that prevents the creation of an object, or None if it was created."""
    try:
        await site.client.create(obj, dry_run=True)
    except ApiError as error:
        return failed(error)
    return None


def failed(error: ApiError) -> str:
    """Return the webhook that could not be called, or the text of any other error."""
    text = str(error)
    _, found, rest = text.partition('failed calling webhook "')
    return rest.partition('"')[0].removesuffix(SUFFIX) if found else text


async def assert_all_pass(site: WebhookSite, namespace: str) -> None:
    for obj in harmless(namespace):
        what = f"{obj['kind']} {obj['metadata'].get('name', '')}"
        assert (what, await refusal(site, obj)) == (what, None)


# A runtime installation


async def test_objects_that_a_webhook_must_change_are_refused_without_the_manager(
    runtime_down: WebhookSite,
) -> None:
    known = await registered(runtime_down, "runtime")
    garden = await runtime_down.add_namespace(**GARDEN)
    shoot = await runtime_down.add_namespace(**ROLES)
    objects = meant(garden) | {BALANCING: selected_by("", shoot)}
    for entry, obj in objects.items():
        assert await refusal(runtime_down, obj) == entry
        assert known[entry]["failurePolicy"] == "Fail"
    judged = {entry for entry in known if entry.startswith("validation.")}
    protected = {name.removesuffix(SUFFIX) for name in (CR_NAME, CRD_NAME)}
    assert set(known) == set(objects) | judged | protected | IGNORED
    assert {name for name in known if known[name]["failurePolicy"] == "Ignore"} == IGNORED


async def test_extension_objects_are_neither_created_nor_deleted_without_review(
    runtime_down: WebhookSite,
) -> None:
    site = runtime_down
    namespace = await site.add_namespace()
    await site.unregister()
    await site.effective(lambda: _passes(site, namespace))
    crd = definition(GroupVersionKind("down.example.org", "v1", "Held"))
    await site.add_definitions([labelled(crd, **{marks.DELETION_PROTECTED: "true"})])
    stored = {}
    for kind in KINDS:
        gvk = GroupVersionKind(kind.group, "v1alpha1", kind.kind)
        stored[kind] = gvk, Key.of(await site.client.create(valid(gvk, namespace, namespace)))
    await go_down(site, "runtime")
    protected = set(PROTECTED.values())
    for kind, (gvk, key) in stored.items():
        other = valid(gvk, namespace, f"{namespace}-2")
        assert await refusal(site, other) == f"validation.extensions.{kind.plural}"
        if kind.kind in protected:
            with pytest.raises(ApiError) as caught:
                await site.client.delete(gvk, key)
            assert failed(caught.value) == CR_NAME.removesuffix(SUFFIX)
        else:
            assert kind.kind == "Bastion"
            await site.client.delete(gvk, key)
    with pytest.raises(ApiError) as caught:
        await site.client.delete(CRD, Key.of(crd))
    assert failed(caught.value) == CRD_NAME.removesuffix(SUFFIX)
    free = definition(GroupVersionKind("down.example.org", "v1", "Free"))
    await site.add_definitions([free])
    await site.client.delete(CRD, Key.of(free))


async def _passes(site: WebhookSite, namespace: str) -> bool:
    extension = GroupVersionKind("extensions.gardener.cloud", "v1alpha1", "Extension")
    return await refusal(site, valid(extension, namespace)) is None


async def test_nothing_else_is_refused_without_the_manager(runtime_down: WebhookSite) -> None:
    await assert_all_pass(runtime_down, HOME)
    garden = await runtime_down.add_namespace(**GARDEN)
    await assert_all_pass(runtime_down, garden)


async def test_existing_objects_can_be_changed_and_deleted(runtime_down: WebhookSite) -> None:
    client = runtime_down.client
    namespace = await runtime_down.add_namespace(**ROLES)
    key = Key.of(await client.create(pod(namespace, "web", labels={"static-pod": "true"})))
    nothing: JsonObject = {"metadata": {"labels": {"static-pod": None}}}
    await client.patch(POD, key, nothing)
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await client.patch(POD, key, ready, subresource="status")
    await client.delete(POD, key)


async def test_optional_changes_are_omitted(runtime_down: WebhookSite) -> None:
    obj = pod(await runtime_down.add_namespace(), "web")
    assert effects(await runtime_down.client.create(obj)) == set()


async def test_an_unresponsive_server_delays_pods_by_two_seconds(
    site: WebhookSite,
) -> None:
    async with site.serving("target"):
        await site.effective(lambda: site.mutates("kube-system"))
    key = Key("", "gardener-resource-manager-shoot")
    live = await site.client.get(MUTATING, key)
    (entry,) = (e for e in live["webhooks"] if e["name"].startswith("kubernetes-service-host"))
    await site.client.patch(MUTATING, key, {"webhooks": [entry]})
    connected: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(
        lambda _, writer: connected.append(writer), "127.0.0.1", site.port
    )
    namespace = await site.add_namespace()
    started = asyncio.get_running_loop().time()
    created = await site.client.create(pod(namespace, "web"))
    took = asyncio.get_running_loop().time() - started
    silent.close()
    for writer in connected:
        writer.close()
    assert "host" not in effects(created)
    assert entry["timeoutSeconds"] == 2
    assert took > 1.9


# A target installation


async def test_in_a_target_only_system_objects_are_refused_without_the_manager(
    target_down: WebhookSite,
) -> None:
    known = await registered(target_down, "target")
    objects = meant("kube-system")
    for entry, obj in objects.items():
        assert await refusal(target_down, obj) == entry
    assert set(known) == set(objects) | {BALANCING} | IGNORED
    await assert_all_pass(target_down, "kube-system")
    shoot = await target_down.add_namespace()
    await assert_all_pass(target_down, shoot)
    assert await refusal(target_down, selected_by("seccomp-profile", shoot)) is None
    others = selected_by("system-components-config", "kube-system")
    others["metadata"]["labels"][marks.MANAGED_BY] = "somebody"
    assert await refusal(target_down, others) is None


# Recovery


@pytest.mark.parametrize("kind", ["runtime", "target"])
async def test_a_manager_that_recovers_is_called_at_once(site: WebhookSite, kind: Where) -> None:
    await go_down(site, kind)
    namespace = HOME if kind == "runtime" else "kube-system"
    assert not await site.mutates(namespace)
    async with site.serving(kind):
        assert await site.mutates(namespace)


async def test_a_restart_does_not_affect_requests_that_should_pass(site: WebhookSite) -> None:
    """Requests are sent throughout, and those for other namespaces must never be affected."""
    matching, other = await site.add_namespace(**GARDEN), await site.add_namespace()
    answers: Counter[str] = Counter()
    over = asyncio.Event()

    async def request(namespace: str, what: str) -> None:
        while not over.is_set():
            refused = await refusal(site, pod(namespace, "web"))
            answers[f"{what}: {'passed' if refused is None else refused}"] += 1

    async with asyncio.TaskGroup() as group:
        async with site.serving():
            await site.effective(lambda: site.mutates(matching))
            for _ in range(3):
                group.create_task(request(matching, "matching"))
                group.create_task(request(other, "other"))
            await until_more(site, answers, "matching: passed")
        await until_more(site, answers, "matching: projected-token-mount")
        async with site.serving():
            await until_more(site, answers, "matching: passed")
            await until_more(site, answers, "other: passed")
            over.set()
    entry_names = {*SKIPS, "passed"}
    assert {key.partition(": ")[2] for key in answers if key.startswith("matching")} <= entry_names
    assert {key for key in answers if key.startswith("other")} == {"other: passed"}


async def until_more(site: WebhookSite, answers: "Counter[str]", what: str) -> None:
    """Wait until there are ten more answers of a kind."""
    desired = answers[what] + 10
    async with asyncio.timeout(PATIENCE):
        while answers[what] < desired:
            await site.client.get_raw("/version")
