"""The details of an object, and the data that never leaves the process."""

import base64

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from tests.support.dashboard_objects import bad, create_managed_resource
from tests.support.dashboard_site import DashboardSite

VALUE = "correct horse battery staple"


def reference(kind: str, namespace: str, name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name}


async def test_values_of_secrets_never_leave_the_process(
    site: DashboardSite, cluster_client: Client, namespace: str
) -> None:
    encoded = base64.b64encode(VALUE.encode()).decode()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "namespace": namespace,
            "name": "login",
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": f'{{"data": "{encoded}"}}'
            },
        },
        "data": {"password": encoded},
    }
    await cluster_client.create(secret)
    subject = reference("Secret", namespace, "login")
    for path in ("/api/object", "/api/why"):
        status, text = await site.get(path, **subject)
        assert status == 200
        assert VALUE not in text
        assert encoded not in text
    shown = await site.json("/api/object", **subject)
    assert shown["object"]["data"] == {"password": f"{len(VALUE)} bytes"}
    assert "managedFields" not in shown["object"]["metadata"]


async def test_a_managed_resource_lists_its_objects_with_their_states(
    site: DashboardSite, cluster_client: Client, namespace: str
) -> None:
    labels = {"app": "web"}
    deployment: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": "web", "generation": 1},
        "spec": {
            "paused": True,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
    }
    await cluster_client.create(deployment)
    key = Key(namespace, "web")
    resources = [
        {**reference("Deployment", namespace, "web"), "apiVersion": "apps/v1"},
        reference("ConfigMap", namespace, "kube-root-ca.crt"),
        reference("ConfigMap", namespace, "absent"),
        reference("ConfigMap", namespace, "stuck"),
        reference("Namespace", "default", "default"),
    ]
    metadata = {"namespace": namespace, "name": "stuck", "finalizers": ["example.org/hold"]}
    stuck = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    await cluster_client.create(stuck)
    await cluster_client.delete(CONFIG_MAP, Key(namespace, "stuck"))
    await create_managed_resource(cluster_client, key, bad("it is broken"), resources)
    shown = await site.json(
        "/api/object",
        apiVersion=MANAGED_RESOURCE.api_version,
        kind=MANAGED_RESOURCE.kind,
        namespace=namespace,
        name="web",
    )
    await cluster_client.patch(
        CONFIG_MAP, Key(namespace, "stuck"), {"metadata": {"finalizers": None}}
    )
    workload, _, absent, deleted, cluster_wide = shown["objects"]
    assert (deleted["state"], deleted["problem"]) == (
        "deleting",
        "it waits for the finalizers example.org/hold",
    )
    assert (cluster_wide["id"], cluster_wide["state"]) == ("v1/Namespace//default", "healthy")
    assert workload["state"] == "trouble"
    assert workload["problem"]
    assert (absent["state"], absent["problem"]) == ("", "it is not in this cluster")
    [problem] = [each for each in shown["conditions"] if each["state"] == "trouble"]
    assert problem["message"] == "it is broken"


async def test_the_page_explains_the_state_of_an_object(
    site: DashboardSite, cluster_client: Client, namespace: str
) -> None:
    key = Key(namespace, "web")
    await create_managed_resource(cluster_client, key, bad("Deployment web has no replicas"))
    answer = await site.json(
        "/api/why",
        apiVersion=MANAGED_RESOURCE.api_version,
        kind=MANAGED_RESOURCE.kind,
        namespace=namespace,
        name="web",
    )
    assert "Deployment web has no replicas" in answer["findings"][0]["problem"]


async def test_a_missing_object_is_reported_in_one_sentence(
    site: DashboardSite, namespace: str
) -> None:
    status, text = await site.get("/api/object", **reference("ConfigMap", namespace, "absent"))
    assert status == 404
    assert text == 'configmaps "absent" not found\n'
    status, text = await site.get("/api/object", kind="ConfigMap")
    assert (status, text) == (
        400,
        "name the object: apiVersion, kind, namespace and name\n",
    )
