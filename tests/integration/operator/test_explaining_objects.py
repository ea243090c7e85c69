"""From an unready object down to the cause, with a real API server and controllers."""

from dataclasses import replace
from typing import Any

import pytest

from pergola.api.kinds import DEPLOYMENT, POD, SERVICE_ACCOUNT, STATEFUL_SET
from pergola.api.objects import GroupVersionKind, Identity, JsonObject, Key, maps_at, uid_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.health.conditions import has_status
from pergola.kube.client import Client
from pergola.manifests import manifest
from pergola.operator.reconcile.picture import NO_OPERATION, Operation, Picture, State, Task, Wait
from pergola.runtime.clock import SystemClock
from pergola.testing.crds import install_crds, install_definitions
from pergola.testing.waiting import until
from pergola.why import Reader, Statement
from pergola.why.garden_parts import Unknown, answer
from pergola.why.health import unhealthy
from pergola.why.health.replicas import REPLICA_SET

UNSCHEDULED = {"schedulerName": "none"}
NOWHERE = {"nodeSelector": {"example.org/has": "no-node"}}
WEB = "registry.example/web:1"


def workload(kind: str, namespace: str, pod_spec: JsonObject, **spec: Any) -> JsonObject:
    labels = {"app": "web"}
    containers = [{"name": "app", "image": WEB}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers, **pod_spec}}
    selector = {"matchLabels": labels}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"replicas": 1, "selector": selector, "template": template, **spec},
    }


def managed_resource(namespace: str, **spec: Any) -> JsonObject:
    return {
        "apiVersion": "resources.gardener.cloud/v1alpha1",
        "kind": "ManagedResource",
        "metadata": {"name": "demo", "namespace": namespace},
        "spec": {"secretRefs": [{"name": "lost"}], **spec},
    }


def container_status(state: JsonObject, **rest: Any) -> JsonObject:
    return {"name": "app", "image": WEB, "imageID": "", "ready": False, "state": state, **rest}


async def with_status(client: Client, namespace: str, status: JsonObject) -> None:
    """Create a StatefulSet whose only pod has a status that no kubelet changes."""
    await client.create(workload("StatefulSet", namespace, UNSCHEDULED))
    await until(client, POD, Key(namespace, "web-0"), bool)
    patch = {"status": {"phase": "Pending", "containerStatuses": [{"restartCount": 0} | status]}}
    await client.patch(POD, Key(namespace, "web-0"), patch, subresource="status")


async def explained(client: Client, gvk: GroupVersionKind, key: Key) -> Statement:
    found = await unhealthy(Identity(gvk, key), Reader(client))
    assert found is not None
    return found


async def test_pods_that_cannot_be_created_are_named_first(
    cluster_client: Client, namespace: str
) -> None:
    obj = workload("Deployment", namespace, {"serviceAccountName": "missing"})
    await cluster_client.create(obj)
    key = Key(namespace, "web")
    await until(
        cluster_client, DEPLOYMENT, key, lambda it: has_status(it, "ReplicaFailure", "True")
    )
    found = await explained(cluster_client, DEPLOYMENT, key)
    assert found.below[0].subject.startswith(f"ReplicaSet {namespace}/web-")
    assert 'serviceaccount "missing" not found' in found.below[0].text
    assert found.below[0].since is not None
    assert "create the ServiceAccount" in found.next_step


async def test_an_unschedulable_pod_quotes_the_scheduler(
    cluster_client: Client, namespace: str
) -> None:
    await cluster_client.create(workload("Deployment", namespace, NOWHERE))
    key = Key(namespace, "web")
    await until(cluster_client, DEPLOYMENT, key, lambda it: has_status(it, "Available", "False"))
    await cluster_client.create(
        {
            **workload("StatefulSet", namespace, NOWHERE),
            "metadata": {"name": "set", "namespace": namespace},
        }
    )
    pod = Key(namespace, "set-0")
    await until(cluster_client, POD, pod, lambda it: has_status(it, "PodScheduled", "False"))
    found = await explained(cluster_client, STATEFUL_SET, Key(namespace, "set"))
    [cause] = found.below
    assert cause.subject == f"Pod {pod}"
    assert "cannot be scheduled" in cause.text
    assert "node affinity/selector" in cause.text
    assert "label nodes" in found.next_step


async def test_a_pod_whose_image_cannot_be_pulled_names_the_image(
    cluster_client: Client, namespace: str
) -> None:
    state = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
    await with_status(cluster_client, namespace, container_status(state))
    found = await explained(cluster_client, STATEFUL_SET, Key(namespace, "web"))
    assert found.below[0].text == (
        f'container "app" cannot pull image {WEB}: ImagePullBackOff: not found'
    )
    assert "check that the image exists" in found.next_step


async def test_a_pod_that_crashes_names_the_exit_code_and_how_to_read_its_log(
    cluster_client: Client, namespace: str
) -> None:
    ended = {"terminated": {"exitCode": 3, "reason": "Error"}}
    status = container_status(
        {"waiting": {"reason": "CrashLoopBackOff"}}, lastState=ended, restartCount=4
    )
    await with_status(cluster_client, namespace, status)
    found = await explained(cluster_client, STATEFUL_SET, Key(namespace, "web"))
    assert 'container "app" crashes (exit code 3, restarted 4 times)' in found.below[0].text
    assert found.next_step.endswith(f"kubectl -n {namespace} logs web-0 -c app --previous")


async def test_an_unbound_claim_explains_a_pod_that_fits_no_node(
    cluster_client: Client, namespace: str
) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "missing",
            "resources": {"requests": {"storage": "1Mi"}},
        },
    }
    obj = workload("StatefulSet", namespace, {}, volumeClaimTemplates=[claim])
    await cluster_client.create(obj)
    pod = Key(namespace, "web-0")
    await until(cluster_client, POD, pod, lambda it: has_status(it, "PodScheduled", "False"))
    found = await explained(cluster_client, POD, pod)
    [cause] = found.below
    assert cause.subject == f"PersistentVolumeClaim {namespace}/data-web-0"
    assert cause.text == "phase is Pending, with StorageClass missing"
    assert "StorageClass missing" in found.next_step


async def test_a_managed_resource_without_its_secret_names_the_secret(
    cluster_client: Client, namespace: str
) -> None:
    await install_crds(cluster_client)
    await cluster_client.create(managed_resource(namespace, **{"class": "seed"}))
    found = await explained(cluster_client, MANAGED_RESOURCE, Key(namespace, "demo"))
    assert "was not applied yet" in found.text
    assert found.below[0].subject == f"Secret {namespace}/lost"
    assert "gardener.cloud/operation=reconcile" in found.next_step


async def test_a_virtual_managed_resource_names_its_resource_manager_if_that_is_not_running(
    cluster_client: Client, namespace: str
) -> None:
    await install_crds(cluster_client)
    await cluster_client.create(managed_resource(namespace, secretRefs=[]))
    found = await explained(cluster_client, MANAGED_RESOURCE, Key(namespace, "demo"))
    [cause] = found.below
    manager = "Deployment garden/virtual-garden-gardener-resource-manager"
    assert (cause.subject, cause.text) == (manager, "it does not exist")


async def test_a_crashing_virtual_resource_manager_is_followed_to_its_container(
    runtime: Client,
) -> None:
    """The cluster has no controllers that would change the pods."""
    await install_crds(runtime)
    account = manifest("v1", "ServiceAccount", "default", namespace="garden")
    await runtime.apply(account, manager="test", force=True)
    name = "virtual-garden-gardener-resource-manager"
    deployment = workload("Deployment", "garden", {})
    deployment["metadata"]["name"] = name
    owner = await runtime.create(deployment)
    for kind, suffix in (("ReplicaSet", "-1"), ("Pod", "-1-a")):
        obj = workload("ReplicaSet", "garden", {})
        if kind == "Pod":
            obj = {"apiVersion": "v1", "kind": "Pod", "spec": obj["spec"]["template"]["spec"]}
        reference = {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": uid_of(owner),
            "controller": True,
        }
        metadata = {"labels": {"app": "web"}, "ownerReferences": [reference]}
        metadata |= {"name": name + suffix, "namespace": "garden"}
        owner = await runtime.create({**obj, "metadata": metadata})
    state = {"waiting": {"reason": "CrashLoopBackOff"}}
    ended = {"terminated": {"exitCode": 1, "reason": "Error"}}
    status = container_status(state, lastState=ended, restartCount=1)
    pod = Key("garden", f"{name}-1-a")
    patch = {"status": {"phase": "Running", "containerStatuses": [status]}}
    await runtime.patch(POD, pod, patch, subresource="status")
    resource = managed_resource("garden", secretRefs=[])
    await runtime.create(resource)
    try:
        found = await explained(runtime, MANAGED_RESOURCE, Key.of(resource))
    finally:
        await runtime.delete(MANAGED_RESOURCE, Key.of(resource))
        await runtime.delete(POD, pod)
        await runtime.delete(REPLICA_SET, Key("garden", f"{name}-1"))
        await runtime.delete(DEPLOYMENT, Key("garden", name))
        await runtime.delete(SERVICE_ACCOUNT, Key.of(account))
    [manager] = found.below
    assert manager.subject == f"Deployment garden/{name}"
    [cause] = manager.below
    assert cause.subject == f"Pod {pod}"
    assert 'container "app" crashes (exit code 1' in cause.text


async def test_an_unhealthy_object_of_a_managed_resource_is_followed_to_its_pods(
    cluster_client: Client, namespace: str
) -> None:
    await install_crds(cluster_client)
    await with_status(
        cluster_client,
        namespace,
        container_status({"waiting": {"reason": "InvalidImageName", "message": "bad"}}),
    )
    await cluster_client.create(managed_resource(namespace, **{"class": "seed"}))
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "namespace": namespace}
    status = {"observedGeneration": 1, "resources": [{**reference, "name": "web"}]}
    key = Key(namespace, "demo")
    await cluster_client.patch(MANAGED_RESOURCE, key, {"status": status}, subresource="status")
    found = await explained(cluster_client, MANAGED_RESOURCE, key)
    workloads = [each for each in found.below if each.subject.startswith("StatefulSet")]
    assert workloads[0].below[0].text.endswith("InvalidImageName: bad")


async def test_an_etcd_leads_to_its_stateful_set_and_without_one_to_etcd_druid(
    cluster_client: Client, namespace: str
) -> None:
    await install_definitions(cluster_client, "etcds.druid.gardener.cloud")
    key = Key(namespace, "web")
    etcd = {
        "apiVersion": "druid.gardener.cloud/v1alpha1",
        "kind": "Etcd",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": 1,
            "labels": {"app": "web"},
            "selector": {"matchLabels": {"app": "web"}},
            "etcd": {},
            "backup": {},
        },
    }
    await cluster_client.create(etcd)
    found = await explained(cluster_client, ETCD, key)
    assert found.text == "etcd-druid has not carried out the request to reconcile it"
    assert [each.subject for each in found.below] == [
        "Deployment garden/etcd-druid",
        f"StatefulSet {key}",
    ]
    state = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    await with_status(cluster_client, namespace, container_status(state))
    [cause] = (await explained(cluster_client, ETCD, key)).below
    assert "cannot pull image" in cause.below[0].text


async def test_a_workload_with_ready_pods_has_no_problem(
    cluster_client: Client, namespace: str
) -> None:
    await cluster_client.create(workload("Deployment", namespace, {}))
    key = Key(namespace, "web")
    await until(
        cluster_client,
        DEPLOYMENT,
        key,
        lambda it: (
            [
                c
                for c in maps_at(it, "status", "conditions")
                if c.get("reason") == "NewReplicaSetAvailable"
            ]
            != []
        ),
    )
    assert await unhealthy(Identity(DEPLOYMENT, key), Reader(cluster_client)) is None


# Answers


def picture_in(namespace: str) -> Picture:
    web = Identity(STATEFUL_SET, Key(namespace, "web"))
    wait = Wait(f"StatefulSet {web.key}", "it is not ready", identity=web)
    deploy = Task(
        name="Deploying web",
        flow="Main",
        state=State.RUNNING,
        component="web-app",
        waits=(wait,),
        objects=(web,),
    )
    last = Task(
        name="Deploying last",
        flow="Main",
        state=State.PENDING,
        component="last",
        after=("Deploying web",),
    )
    off = Task(
        name="Deploying off", flow="Main", state=State.SKIPPED, component="off", why="spec.off"
    )
    return Picture(
        garden="local", at=SystemClock().now(), operation=NO_OPERATION, tasks=(deploy, last, off)
    )


async def test_a_skipped_component_gives_the_reason(cluster_client: Client, namespace: str) -> None:
    found = await answer(Reader(cluster_client), "off", picture_in(namespace))
    assert (found.state, found.sentence) == (
        State.SKIPPED.value,
        "component off is skipped: spec.off",
    )


@pytest.mark.parametrize("name", ["web-app", "deploying web", "web", "StatefulSet/web"])
async def test_a_running_component_is_explained_by_any_of_its_names(
    cluster_client: Client, namespace: str, name: str
) -> None:
    state = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    await with_status(cluster_client, namespace, container_status(state))
    found = await answer(Reader(cluster_client), name, picture_in(namespace))
    assert (found.details["component"], found.state) == ("web-app", State.RUNNING.value)
    assert "cannot pull image" in found.statements[0].below[0].text
    assert "check that the image exists" in found.next_steps[0]


async def test_a_pending_component_is_explained_by_what_it_waits_for(
    cluster_client: Client, namespace: str
) -> None:
    found = await answer(Reader(cluster_client), "last", picture_in(namespace))
    assert found.sentence == (
        'component last has not started: it comes after "Deploying web", which runs'
    )
    assert found.statements[0].subject == f"StatefulSet {namespace}/web"


async def test_a_finished_component_exists_or_is_deleted(
    cluster_client: Client, namespace: str
) -> None:
    web = Identity(STATEFUL_SET, Key(namespace, "web"))
    task = Task(name="a", flow="Main", state=State.DONE, component="web", objects=(web,))
    there = replace(picture_in(namespace), tasks=(task,))
    gone = replace(there, operation=Operation("Delete", "Processing", 10))
    found = await answer(Reader(cluster_client), "a", there)
    key = f"StatefulSet {web.key}"
    assert found.sentence == f"component web is there because the Garden needs it, as {key}"
    found = await answer(Reader(cluster_client), "a", gone)
    assert found.sentence == "component web is gone: Garden local is being deleted"


async def test_an_unknown_name_is_an_error_with_similar_names(
    cluster_client: Client, namespace: str
) -> None:
    with pytest.raises(Unknown, match="did you mean web-app"):
        await answer(Reader(cluster_client), "webapp", picture_in(namespace))
