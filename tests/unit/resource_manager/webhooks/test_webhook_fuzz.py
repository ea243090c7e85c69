"""Webhooks answer any input with a valid review, and never fail.

Each example is a review that an API server could send, with some of its parts replaced by other
JSON. `make soak ARGS=fuzz` tries thousands of them for each webhook.
"""

from collections.abc import Sequence
from typing import Final

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue, Key
from pergola.api.resource_manager_config.controllers import Switch
from pergola.api.resource_manager_config.webhooks import KubernetesServiceHost, Webhooks
from pergola.resource_manager.webhooks.catalog import webhooks
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.extension_validation.kinds import KINDS
from pergola.resource_manager.webhooks.extension_validation.review import path_of
from pergola.resource_manager.webhooks.facts.high_availability import (
    NamespaceSettings,
    read_namespace,
)
from pergola.resource_manager.webhooks.facts.taints import Taint
from pergola.resource_manager.webhooks.installation import Installation
from pergola.resource_manager.webhooks.node_agent_authorizer.decide import (
    GROUP,
    USER_PREFIX,
    Agent,
)
from pergola.resource_manager.webhooks.node_agent_authorizer.protocol import NodeAgentAuthorizer
from pergola.runtime.metrics import Metrics
from tests.support.fuzzing import Fuzzed, Sample, called, examples, nearly

pytestmark = pytest.mark.thorough("fuzz")

HA: Final = "high-availability-config.resources.gardener.cloud"
PANICS: Final = "controller_runtime_webhook_panics_total"


class KnownCluster:
    """The lookups of a cluster in which everything exists."""

    def known_mount(self, account: Key) -> bool | None:
        """Return None: the other method answers."""
        return None

    def known_taints(self) -> Sequence[Taint] | None:
        """Return None: the other method answers."""
        return None

    async def mounts_token(self, account: Key) -> bool:
        return account.name != "robot"

    async def system_taints(self) -> Sequence[Taint]:
        return [Taint("a", "b", "NoSchedule")]

    async def namespace(self, name: str) -> NamespaceSettings:
        return read_namespace({f"{HA}/zones": "a,b", f"{HA}/failure-tolerance-type": "zone"})

    async def most_replicas(self, workload: GroupVersionKind, key: Key) -> int | None:
        return 5

    async def many_nodes(self) -> bool:
        return True

    async def config_map(self, key: Key) -> JsonObject:
        return {"data": {"hosts": "a,b", "istio-namespace": "istio"}}

    async def service(self, key: Key) -> JsonObject:
        return {"spec": {"clusterIPs": ["10.0.0.1", "2001:db8::1"]}}

    async def objects(self, gvk: GroupVersionKind, namespace: str, labels: str) -> list[JsonObject]:
        return []

    async def agent(self, name: str) -> Agent:
        return Agent(name, "node-1", {})

    async def requester(self, signing_request: str) -> str | None:
        return None

    async def node_of_pod(self, pod: Key) -> str | None:
        return "node-1"

    async def own_secrets(self, agent: Agent) -> frozenset[str]:
        return frozenset()


CONTAINER: Final[JsonObject] = {
    "name": "c",
    "image": "i",
    "env": [{"name": "X", "value": "y"}],
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
}
SELECTOR: Final[JsonObject] = {
    "matchLabels": {"app": "x"},
    "matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}],
}
POD_SPEC: Final[JsonObject] = {
    "serviceAccountName": "robot",
    "automountServiceAccountToken": True,
    "schedulerName": "default-scheduler",
    "containers": [CONTAINER],
    "initContainers": [CONTAINER],
    "securityContext": {"runAsUser": 1, "seccompProfile": {"type": "Unconfined"}},
    "nodeSelector": {"pool": "x"},
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}],
    "volumes": [
        {"name": "k", "secret": {"secretName": "generic-token-kubeconfig"}},
        {"name": "p", "projected": {"sources": [{"secret": {"name": "s"}}]}},
    ],
    "tolerations": [
        {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    ],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "z", "operator": "In", "values": ["a"]}]}
                ]
            }
        }
    },
    "topologySpreadConstraints": [
        {
            "topologyKey": "kubernetes.io/hostname",
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": SELECTOR,
            "matchLabelKeys": ["pod-template-hash"],
        }
    ],
}
METADATA: Final[JsonObject] = {
    "name": "x",
    "namespace": "n",
    "uid": "u",
    "labels": {"app": "x", "pod-template-hash": "1", f"{HA}/type": "controller"},
    "annotations": {
        f"{HA}/replicas": "3",
        "confirmation.gardener.cloud/deletion": "true",
        "gardener.cloud/timestamp": "2030-01-01T00:00:00Z",
    },
    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": True}],
    "finalizers": ["a/b"],
    "deletionTimestamp": None,
}
REFERENCE: Final[JsonObject] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
EXTENSION_SPEC: Final[JsonObject] = {
    "type": "aws",
    "providerConfig": {"a": 1},
    "region": "r",
    "secretRef": {"name": "s", "namespace": "n"},
    "purpose": "reconcile",
    "podCIDR": "10.0.0.0/8",
    "serviceCIDR": "11.0.0.0/8",
    "ipFamilies": ["IPv4"],
    "bucketName": "b",
    "name": "a.example.org",
    "recordType": "A",
    "values": ["10.0.0.1"],
    "ttl": 1,
    "binaryPath": "/b",
    "workerPool": {"name": "p", "selector": SELECTOR},
    "userData": "Zm9v",
    "ingress": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
    "port": 443,
    "endpoints": [{"nodeName": "n", "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}],
    "backup": {"store": {"prefix": "n--x", "provider": "aws"}},
    "units": [{"name": "u", "dropIns": [{"name": "d", "content": "c"}], "filePaths": ["/f"]}],
    "files": [
        {"path": "/f", "content": {"inline": {"encoding": "b64", "data": "x"}}},
        {"path": "/g", "content": {"secretRef": {"name": "s", "dataKey": "k"}}},
    ],
    "criConfig": {
        "name": "containerd",
        "cgroupDriver": "systemd",
        "containerd": {
            "sandboxImage": "i",
            "registries": [{"upstream": "u", "server": "https://s", "hosts": [{"url": "h"}]}],
            "plugins": [{"op": "add", "path": ["a"], "values": {}}],
        },
    },
    "pools": [
        {
            "name": "p",
            "machineType": "m",
            "machineImage": {"name": "i", "version": "1"},
            "architecture": "amd64",
            "nodeTemplate": {"capacity": {"cpu": "1", "pods": 1}},
        }
    ],
}


def of_kind(api_version: str, kind: str, **parts: JsonValue) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": METADATA, **parts}


DEPLOYMENT: Final = of_kind(
    "apps/v1",
    "Deployment",
    spec={
        "replicas": 1,
        "selector": SELECTOR,
        "template": {"metadata": METADATA, "spec": POD_SPEC},
    },
)
SAMPLES: Final[tuple[Sample, ...]] = (
    Sample("", "pods", of_kind("v1", "Pod", spec=POD_SPEC)),
    Sample("", "secrets", of_kind("v1", "Secret", data={"token": "AAAA"}, type="Opaque")),
    Sample("apps", "deployments", DEPLOYMENT),
    Sample("apps", "statefulsets", DEPLOYMENT | {"kind": "StatefulSet"}),
    Sample(
        "autoscaling",
        "horizontalpodautoscalers",
        of_kind(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            spec={"minReplicas": 1, "maxReplicas": 2, "scaleTargetRef": REFERENCE},
        ),
    ),
    Sample(
        "autoscaling.k8s.io",
        "hvpas",
        of_kind(
            "autoscaling.k8s.io/v1alpha1",
            "Hvpa",
            spec={"hpa": {"template": {"spec": {"minReplicas": 1, "maxReplicas": 2}}}},
        ),
    ),
    Sample(
        "discovery.k8s.io",
        "endpointslices",
        of_kind(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            endpoints=[{"zone": "a", "hints": {"forZones": [{"name": "b"}]}}],
        ),
    ),
    Sample(
        "autoscaling.k8s.io",
        "verticalpodautoscalers",
        of_kind(
            "autoscaling.k8s.io/v1",
            "VerticalPodAutoscaler",
            spec={"updatePolicy": {"updateMode": "Auto"}},
        ),
    ),
    *(
        Sample(
            kind.group,
            kind.plural,
            of_kind(f"{kind.group}/v1alpha1", kind.kind, spec=EXTENSION_SPEC),
        )
        for kind in KINDS
    ),
)


def enabled() -> Webhooks:
    found = Webhooks(kubernetes_service_host=KubernetesServiceHost(host="api.example.org"))
    for name in found.__struct_fields__:
        switch: Switch = getattr(found, name)
        switch.enabled = True
    found.high_availability_config.default_not_ready_toleration_seconds = 60
    found.system_components_config.pod_node_selector = {"pool": "system"}
    return found


WEBHOOKS: Final = webhooks(
    enabled(), Dependencies(Installation("runtime", hvpa=True), KnownCluster())
)
FUZZED: Final = Fuzzed.of(WEBHOOKS, Metrics())
OF_EXTENSIONS: Final = {path_of(kind): kind.kind for kind in KINDS}


def samples_for(path: str) -> list[Sample]:
    """Return the objects of a webhook, and a pod that it may receive by mistake."""
    if path in OF_EXTENSIONS:
        return [s for s in SAMPLES if s.obj["kind"] in (OF_EXTENSIONS[path], "Pod")]
    return list(SAMPLES)


@pytest.mark.parametrize("path", sorted(FUZZED.served))
@given(data=st.data())
@settings(max_examples=examples(), suppress_health_check=[HealthCheck.too_slow])
def test_a_webhook_responds_to_every_request(path: str, data: st.DataObject) -> None:
    FUZZED.check(data, path, samples_for(path))


AUTHORIZER: Final = NodeAgentAuthorizer(KnownCluster(), by_selectors=True)
SUBJECT_ACCESS: Final[JsonObject] = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SubjectAccessReview",
    "spec": {
        "user": f"{USER_PREFIX}machine-1",
        "groups": [GROUP],
        "resourceAttributes": {
            "verb": "list",
            "group": "",
            "resource": "pods",
            "subresource": "",
            "namespace": "n",
            "name": "x",
            "fieldSelector": {
                "requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["node-1"]}]
            },
        },
    },
}


@given(review=nearly(SUBJECT_ACCESS))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_the_authorizer_responds_to_every_request(review: JsonObject) -> None:
    answer = called(AUTHORIZER("application/json", orjson.dumps(review)))
    assert answer["kind"] == "SubjectAccessReview"
    status = answer["status"]
    assert isinstance(status["allowed"], bool)
    assert not str(status.get("evaluationError", "")).startswith("500")
    if status["allowed"]:
        assert GROUP in review["spec"]["groups"]


@given(body=st.binary(max_size=50))
def test_bodies_that_are_not_reviews_get_a_response(body: bytes) -> None:
    for reviewer in FUZZED.served.values():
        response = called(reviewer("application/json", body))["response"]
        assert (response["allowed"], response["status"]["code"]) == (False, 400)
