"""Random objects of ManagedResources, and random statuses of them, in two clusters at once.

The objects leave out what Pergola does otherwise on purpose (decision 593):

- pods of another controller that a Deployment selects (decision 554);
- objects that others delete or edit;
- changed manifests of bare Pods, and Pods without what admission adds;
- replicas that the manifest of a ReplicaSet or ReplicationController omits;
- fields that the original's Go types of custom resources do not have.
"""

import copy
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import orjson

from pergola.api.kinds import DEPLOYMENT, POD, SECRET
from pergola.api.marks import SKIP_HEALTH_CHECK
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    generation_of,
    labels_of,
    map_at,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.testing.crds import definition, serve
from tests.support.beside_original import Sides

NAMESPACE: Final = "demo"
_COUNTS: Final[Mapping[tuple[str, str], int]] = {
    ("apps/v1", "Deployment"): 9,
    ("apps/v1", "StatefulSet"): 6,
    ("apps/v1", "DaemonSet"): 6,
    ("apps/v1", "ReplicaSet"): 3,
    ("v1", "ReplicationController"): 3,
    ("v1", "Pod"): 3,
    ("batch/v1", "Job"): 4,
    ("v1", "Service"): 3,
    ("monitoring.coreos.com/v1", "Prometheus"): 4,
    ("monitoring.coreos.com/v1", "Alertmanager"): 3,
    ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"): 3,
    ("cert.gardener.cloud/v1alpha1", "Certificate"): 4,
    ("cert.gardener.cloud/v1alpha1", "Issuer"): 3,
    ("druid.gardener.cloud/v1alpha1", "Etcd"): 1,
    ("v1", "ConfigMap"): 1,
    ("v1", "PersistentVolumeClaim"): 1,
    ("policy/v1", "PodDisruptionBudget"): 1,
}
"""The kinds, and the number of ManagedResources with one object of each; the last have no rule."""
_MIXED: Final = 8
_KINDS: Final = {kind: GroupVersionKind.parse(version, kind) for version, kind in _COUNTS}
_PLURALS: Final = {
    "Prometheus": "prometheuses",
    "Alertmanager": "alertmanagers",
    "VerticalPodAutoscaler": "verticalpodautoscalers",
    "Certificate": "certificates",
    "Issuer": "issuers",
    "Etcd": "etcds",
}
_FROZEN: Final = ("Job", "PersistentVolumeClaim", "Service", "ReplicaSet")
"""Kinds whose specs stay, as they are immutable or assigned by others."""
_TIME: Final = "2026-01-01T00:00:00Z"
_POD: Final = {
    "automountServiceAccountToken": False,
    "containers": [{"name": "c", "image": "registry.example/c:1"}],
}
_TOLERATION: Final = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
_ADMITTED: Final = {
    **_POD,
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "priority": 0,
    "preemptionPolicy": "PreemptLowerPriority",
    "tolerations": [
        {**_TOLERATION, "key": f"node.kubernetes.io/{key}"} for key in ("not-ready", "unreachable")
    ],
}
"""A bare Pod as the API server stores it; the original cannot update it otherwise."""
_NEWEST: Final = "NewReplicaSetAvailable"
_PODS: Final[tuple[JsonObject, ...]] = (
    *({"phase": "Running"}, {"phase": "Running"}, {"phase": "Running"}, {"phase": "Pending"}),
    *({"phase": "Succeeded"}, {"phase": "Failed"}, {"phase": "Failed", "reason": "Evicted"}),
    *({"phase": "Running", "reason": reason} for reason in ("NodeLost", "OutOfcpu", "Other")),
    {"phase": "Running", "conditions": [{"type": "DisruptionTarget", "status": "True"}]},
    {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}],
    },
)


async def prepare(client: Client) -> None:
    """Serve the kinds of other projects, and create the namespace."""
    await serve(
        client,
        *(
            definition(_KINDS[kind], plural=plural, has_status=True)
            for kind, plural in _PLURALS.items()
        ),
    )
    await client.create(_object("v1", "Namespace", {"name": NAMESPACE}))
    account = {"name": "default", "namespace": NAMESPACE}
    await client.create(_object("v1", "ServiceAccount", account))


class Statuses:
    """ManagedResources that exist in both clusters, and random changes of their objects."""

    def __init__(self, sides: Sides, chance: random.Random) -> None:
        self._sides = sides
        self._chance = chance
        self._manifests: dict[str, JsonObject] = {}
        self._resources: dict[str, list[str]] = {}
        self._pods: dict[str, list[str]] = {}

    async def fill(self) -> None:
        """Create ManagedResources of one object, and some of several."""
        kinds = [[kind] for (_, kind), count in _COUNTS.items() for _ in range(count)]
        kinds += [self._chance.sample([*_KINDS], 3) for _ in range(_MIXED)]
        for number, several in enumerate(kinds):
            names = [f"r{number}-{kind.lower()}" for kind in several]
            resource = names[0]
            self._resources[resource] = names
            for name, kind in zip(names, several, strict=True):
                self._manifests[name] = self._manifest(kind, name)
            key = {"name": resource, "namespace": NAMESPACE}
            data = {"objects.json": self._content(resource)}
            await self._sides.create(
                _object("v1", "Secret", key, stringData=data),
                _object(
                    MANAGED_RESOURCE.api_version,
                    MANAGED_RESOURCE.kind,
                    key,
                    spec={"secretRefs": [{"name": resource}]},
                ),
            )

    async def change_statuses(self) -> None:
        """Give many objects another status."""
        for manifest in self._manifests.values():
            if self._chance.random() < 0.4:
                continue
            status = self._status(manifest)
            if not status:
                continue

            def edit(live: JsonObject, status: JsonObject = status) -> None:
                live["status"] = _observed(status, generation_of(live))

            # A Job that failed stays so; both servers refuse.
            await self._sides.change(
                *_named(manifest), edit, subresource="status", may_be_refused=True
            )

    async def change_manifests(self) -> None:
        """Change the manifests of some objects, which changes their generation."""
        for resource, names in self._resources.items():
            name = self._chance.choice(names)
            old = self._manifests[name]
            if old["kind"] == "Pod" or self._chance.random() > 0.3:
                continue
            new = self._manifest(old["kind"], name)
            if old["kind"] in _FROZEN:
                new["spec"] = old["spec"]
            self._manifests[name] = new
            body = {"stringData": {"objects.json": self._content(resource)}}
            key = Key(NAMESPACE, resource)
            await self._sides.patch(SECRET, key, body)

    async def change_pods(self) -> None:
        """Replace the pods of some Deployments; some of the new ones are terminating."""
        for name, manifest in self._manifests.items():
            if manifest["kind"] != "Deployment" or self._chance.random() < 0.4:
                continue
            old = self._pods.get(name, [])
            count = self._chance.choice([manifest["spec"].get("replicas", 1)] * 3 + [0, 1, 2])
            new = [
                (
                    self._chance.choice(["new", "new", "old"]),
                    self._chance.choice(_PODS),
                    self._chance.random() < 0.15,
                )
                for _ in range(count)
            ]
            await self._sides.both(partial(_replace, name, old, new))
            self._pods[name] = [f"{name}-{number}" for number in range(count)]

    async def describe(self, resource: str) -> object:
        """Return what is known about the objects of a ManagedResource."""
        lines = []
        for name in self._resources[resource]:
            for side, client in (("theirs", self._sides.theirs), ("ours", self._sides.ours)):
                found = await client.find(*_named(self._manifests[name])) or {}
                parts = (generation_of(found), annotations_of(found).get(SKIP_HEALTH_CHECK))
                fields = {k: v for k, v in map_at(found, "spec").items() if k != "template"}
                lines.append(f"{name} {side}: {parts} {fields} {found.get('status')}")
        return "\n    ".join(lines)

    # Objects

    def _content(self, resource: str) -> str:
        manifests = [self._manifests[name] for name in self._resources[resource]]
        return "\n---\n".join(orjson.dumps(each).decode() for each in manifests)

    def _manifest(self, kind: str, name: str) -> JsonObject:
        metadata: JsonObject = {"name": name, "namespace": NAMESPACE}
        if self._chance.random() < 0.2:
            value = self._chance.choice(["true", "true", "false", "True", ""])
            metadata["annotations"] = {SKIP_HEALTH_CHECK: value}
        version = _KINDS[kind].api_version
        if kind == "ConfigMap":
            return _object(version, kind, metadata, data={"a": "b"})
        return _object(version, kind, metadata, spec=self._spec(kind, name))

    def _spec(self, kind: str, name: str) -> JsonObject:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": _POD}
        workload = {"selector": {"matchLabels": labels}, "template": template}
        scaled = {"replicas": self._chance.choice([0, 1, 1, 2, 3])}
        service = {"type": self._chance.choice(["LoadBalancer", "LoadBalancer", "ClusterIP"])}
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        custom = self._chance.choice([scaled, scaled, {}])
        number = self._chance.randrange(1, 3)
        specs: dict[str, JsonObject] = {
            "Deployment": {**workload, **scaled, "strategy": self._deployment_strategy()},
            "StatefulSet": {
                **workload,
                **scaled,
                "serviceName": "x",
                "updateStrategy": self._stateful_set_strategy(),
            },
            "DaemonSet": {**workload, "updateStrategy": self._daemon_set_strategy()},
            "ReplicaSet": {**workload, **scaled},
            "ReplicationController": {"selector": labels, "template": template, **scaled},
            "Pod": _ADMITTED,
            "Job": {"template": {"spec": {**_POD, "restartPolicy": "Never"}}},
            "Service": {**service, "ports": [{"port": 80}]},
            "PersistentVolumeClaim": claim,
            "VerticalPodAutoscaler": {"updatePolicy": {"minReplicas": number}},
            "Certificate": {"commonName": f"{number}.example.org"},
            "Issuer": {"requestsPerDayQuota": number},
            "PodDisruptionBudget": {"maxUnavailable": 1, "selector": {"matchLabels": labels}},
        }
        return specs.get(kind, custom)

    def _deployment_strategy(self) -> JsonObject:
        surge = self._chance.choice([0, 1, "50%"])
        rolling = {"maxSurge": surge, "maxUnavailable": self._chance.choice([1, "25%"])}
        return self._chance.choice(
            [{"type": "Recreate"}, {"type": "RollingUpdate", "rollingUpdate": rolling}]
        )

    def _stateful_set_strategy(self) -> JsonObject:
        rolling = {"partition": self._chance.randrange(4)}
        return self._chance.choice(
            [{"type": "OnDelete"}, {"type": "RollingUpdate", "rollingUpdate": rolling}]
        )

    def _daemon_set_strategy(self) -> JsonObject:
        unavailable = self._chance.choice([0, 1, 2, "10%", "34%", "50%", "100%"])
        rolling = {"maxUnavailable": unavailable, "maxSurge": 0 if unavailable else 1}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        return self._chance.choice([strategy, strategy, {"type": "OnDelete"}])

    # Statuses, with generations relative to that of the live object

    def _status(self, manifest: JsonObject) -> JsonObject:
        kind, desired = manifest["kind"], map_at(manifest, "spec").get("replicas", 1)
        makers: Mapping[str, Callable[[int], JsonObject]] = {
            "Deployment": self._deployment,
            "StatefulSet": self._stateful_set,
            "DaemonSet": self._daemon_set,
            "ReplicaSet": self._replica_set,
            "ReplicationController": self._replica_set,
            "Pod": self._pod,
            "Job": self._job,
            "Service": self._service,
            "Prometheus": self._monitoring,
            "Alertmanager": self._monitoring,
            "VerticalPodAutoscaler": self._autoscaler,
            "Certificate": self._certificate,
            "Issuer": self._issuer,
            "Etcd": lambda _: {"ready": False, "observedGeneration": self._generation()},
        }
        if kind == "Service" and manifest["spec"]["type"] != "LoadBalancer":
            return {}
        return makers[kind](desired) if kind in makers else {}

    def _deployment(self, desired: int) -> JsonObject:
        if self._is_good():
            conditions = [_condition("Available"), _condition("Progressing", reason=_NEWEST)]
            return {"observedGeneration": 0, "conditions": conditions}
        reasons = (_NEWEST, _NEWEST, "ProgressDeadlineExceeded", "ReplicaSetUpdated")
        current = desired + self._chance.choice([0, 0, 1, 2])
        ready = self._number(desired, current)
        return {
            "observedGeneration": self._generation(),
            "replicas": current,
            "readyReplicas": ready,
            "availableReplicas": self._number(desired, ready),
            "updatedReplicas": self._number(desired, current),
            "conditions": [
                *self._conditions(0.9, "Available", "Progressing", reasons=reasons),
                *self._conditions(0.2, "ReplicaFailure"),
            ],
        }

    def _stateful_set(self, desired: int) -> JsonObject:
        if self._is_good():
            counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas"), desired)
            return {"observedGeneration": 0, **counts}
        current = desired + self._chance.choice([0, 0, 1])
        return {
            "observedGeneration": self._generation(),
            "replicas": current,
            "readyReplicas": self._number(desired, current),
            "currentReplicas": self._number(desired, current),
            "updatedReplicas": self._number(desired, current),
            "currentRevision": "a",
            "updateRevision": self._chance.choice("ab"),
        }

    def _daemon_set(self, _: int) -> JsonObject:
        desired = self._chance.choice([0, 1, 3, 3, 10, 10])
        status = {"observedGeneration": 0, "desiredNumberScheduled": desired}
        counts = ("currentNumberScheduled", "updatedNumberScheduled", "numberReady")
        status |= dict.fromkeys((*counts, "numberAvailable"), desired)
        status |= {"numberMisscheduled": 0, "numberUnavailable": 0}
        if self._is_good():
            return status
        for count in counts:
            status[count] = self._chance.choice([*[desired] * 4, max(0, desired - 1)])
        return {
            **status,
            "observedGeneration": self._generation(),
            "numberMisscheduled": self._chance.choice([*[0] * 6, 1]),
            "numberUnavailable": self._chance.choice([0, 1, 1, 2, 3]),
        }

    def _replica_set(self, desired: int) -> JsonObject:
        current = desired + self._chance.choice([0, 1])
        ready = desired if self._is_good() else self._number(desired, current)
        return {
            "observedGeneration": self._generation(),
            "replicas": current,
            "readyReplicas": ready,
            "availableReplicas": self._number(desired, ready),
        }

    def _pod(self, _: int) -> JsonObject:
        phases = ["Pending", "Running", "Succeeded", "Failed", "Unknown"]
        return {"phase": self._chance.choice(phases), "conditions": self._conditions(0.7, "Ready")}

    def _job(self, _: int) -> JsonObject:
        reason = "BackoffLimitExceeded"
        failed = [_condition(kind, reason=reason) for kind in ("FailureTarget", "Failed")]
        exceeded = {"startTime": _TIME, "conditions": failed}
        suspended = {"startTime": _TIME, "conditions": self._conditions(0.7, "Suspended", "Failed")}
        return self._chance.choice([{}, {"active": 1}, suspended, exceeded])

    def _service(self, _: int) -> JsonObject:
        addresses = self._chance.choice([[], [{"ip": "192.0.2.1"}], [{"hostname": "a.example"}]])
        return {"loadBalancer": {"ingress": addresses}}

    def _monitoring(self, desired: int) -> JsonObject:
        names = ("Available", "Reconciled")
        conditions = self._conditions(0.9, *names)
        for each in conditions:
            each["observedGeneration"] = self._generation()
        counts = ("replicas", "updatedReplicas", "availableReplicas")
        numbers = {name: self._number(desired, desired + 1) for name in counts}
        if self._is_good():
            conditions = [{**_condition(name), "observedGeneration": 0} for name in names]
            numbers = dict.fromkeys(counts, desired)
        return {"paused": False, "unavailableReplicas": 0, **numbers, "conditions": conditions}

    def _autoscaler(self, _: int) -> JsonObject:
        return {"conditions": self._conditions(0.7, "ConfigUnsupported", "RecommendationProvided")}

    def _issuer(self, _: int) -> JsonObject:
        state = self._chance.choice(["Ready", "Ready", "Pending", "Error", ""])
        return {"state": state, "message": "m", "observedGeneration": self._generation()}

    def _certificate(self, desired: int) -> JsonObject:
        return {**self._issuer(desired), "conditions": self._conditions(0.7, "Ready")}

    def _conditions(
        self, probability: float, *names: str, reasons: tuple[str, ...] = ("Reason",)
    ) -> list[JsonObject]:
        return [
            _condition(
                name,
                self._chance.choice(["True", "True", "False", "Unknown"]),
                self._chance.choice(reasons),
            )
            for name in names
            if self._chance.random() < probability
        ]

    def _generation(self) -> int:
        return self._chance.choice([*[0] * 8, -1, 1])

    def _number(self, desired: int, most: int) -> int:
        wanted = self._chance.choice([desired, desired, desired - 1, desired + 1, 0])
        return min(max(0, wanted), most)

    def _is_good(self) -> bool:
        return self._chance.random() < 0.4


async def _replace(
    deployment: str, old: list[str], new: list[tuple[str, JsonObject, bool]], client: Client
) -> None:
    """Replace the pods of a Deployment, which have the labels of its live template."""
    live = await client.get(DEPLOYMENT, Key(NAMESPACE, deployment))
    for name in old:
        key = Key(NAMESPACE, name)
        pod = await client.get(POD, key)
        if pod["metadata"].get("finalizers"):
            await client.patch(POD, key, {"metadata": {"finalizers": None}})
        else:
            await client.delete(POD, key)
    for number, (suffix, status, is_terminating) in enumerate(new):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{deployment}-{suffix}"}
        metadata: JsonObject = {
            "name": f"{deployment}-{number}",
            "namespace": NAMESPACE,
            "labels": {**labels_of(live["spec"]["template"]), "pod-template-hash": suffix},
            "ownerReferences": [{**owner, "uid": "1", "controller": True}],
        }
        if is_terminating:
            metadata["finalizers"] = ["example.org/pending"]
        key = Key(NAMESPACE, metadata["name"])
        await client.create(_object("v1", "Pod", metadata, spec=_POD))
        await client.patch(POD, key, {"status": copy.deepcopy(status)}, subresource="status")
        if is_terminating:
            await client.delete(POD, key)


def _observed(status: JsonObject, generation: int) -> JsonObject:
    """Return a status whose generations are those of an object."""
    found: JsonObject = {}
    for name, value in status.items():
        if name == "observedGeneration":
            found[name] = max(0, generation + value)
        elif name == "conditions":
            found[name] = [_observed(each, generation) for each in value]
        else:
            found[name] = copy.deepcopy(value)
    return found


def _condition(kind: str, status: str = "True", reason: str = "Reason") -> JsonObject:
    found = {"type": kind, "status": status, "reason": reason, "message": "text"}
    return {**found, "lastTransitionTime": _TIME}


def _named(manifest: JsonObject) -> tuple[GroupVersionKind, Key]:
    return GroupVersionKind.of(manifest), Key.of(manifest)


def _object(version: str, kind: str, metadata: JsonObject, **content: Any) -> JsonObject:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}
