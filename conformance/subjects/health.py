"""Health and rollout of the objects of a ManagedResource."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.kubernetes import (
    GENERATIONS,
    LABELS,
    NAMES,
    NUMBERS,
    TEXTS,
    conditions,
    some,
)
from pergola.api.marks import SKIP_HEALTH_CHECK
from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue
from pergola.health.pods import is_foreign, needs_pod_count, pods_problem
from pergola.health.rules import check, has_rule, is_skipped, progressing

_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_APPS: Final = "apps/v1"
_SELECTOR: Final = {"matchLabels": {"app": "a"}}
_CONTROLLER: Final = {"apiVersion": _APPS, "uid": "1", "controller": True}
_ROLLED_OUT: Final = {
    "apiVersion": _APPS,
    "kind": "Deployment",
    "metadata": {"name": "a", "namespace": "n"},
    "spec": {"replicas": 1, "selector": _SELECTOR},
    "status": {
        "conditions": [
            {"type": "Available", "status": "True"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        ]
    },
}
_PERCENTS: Final = st.sampled_from(["0%", "1%", "34%", "50%", "100%"])
_TEMPLATE: Final = st.just({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": []}})
_POD_REASONS: Final = ("", "Evicted", "NodeLost", "OutOfcpu", "NodeAffinity", "Preempting", "Other")


class Health:
    """Two verdicts about one live object: is it healthy, and is it being rolled out?"""

    name = "health"
    ask = "health"
    title = "Health and rollout of objects"
    of: OracleModule = GARDENER
    code = (
        "pergola.health.conditions",
        "pergola.health.daemon_sets",
        "pergola.health.monitoring",
        "pergola.health.numbers",
        "pergola.health.pods",
        "pergola.health.rules",
        "pergola.health.workloads",
    )

    def table(self) -> Iterator[JsonObject]:
        """Yield an object of each kind without a status, and one that opts out."""
        for version, kind in _KINDS:
            obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}
            if kind not in ("Pod", "Service"):
                obj["spec"] = {"selector": _SELECTOR} if version == _APPS else {}
            yield {"object": obj}
            skipped = {"name": "a", "annotations": {SKIP_HEALTH_CHECK: "true"}}
            yield {"object": {**obj, "metadata": skipped}}
        own = _pod(0, "ReplicaSet")
        for others in ([], [_pod(1, "ReplicaSet")], [_pod(1, "StatefulSet")]):
            yield {"object": _ROLLED_OUT, "pods": [own, *others]}

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return objects of all kinds with a rule; Deployments have pods beside them."""
        return st.sampled_from(sorted(_KINDS)).flatmap(_question)

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the verdicts."""
        return {key: answer.output.get(key) for key in ("checked", "healthy", "progressing")}

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the verdicts; the texts are each side's own."""
        obj, pods = question["object"], question.get("pods", ())
        rollout = progressing(obj)
        if rollout is None and needs_pod_count(GroupVersionKind.of(obj)):
            rollout = pods_problem(obj, pods, now=_NOW)
        ours: JsonObject = {
            "checked": has_rule(GroupVersionKind.of(obj)) and not is_skipped(obj),
            "healthy": check(obj) is None,
            "progressing": rollout is not None,
        }
        foreign = any(is_foreign(obj, pod) for pod in pods)
        for each in differences(self.meaning(answer), ours):
            yield msgspec.structs.replace(each, path=each.path + foreign * " with foreign pods")


def _pod(number: int, owner: str) -> JsonObject:
    """Return a pod that the selector of `_ROLLED_OUT` matches."""
    owners = [{**_CONTROLLER, "kind": owner, "name": f"a-{number}"}]
    labels = {"app": "a", "pod-template-hash": str(number)}
    metadata = {"name": f"pod-{number}", "namespace": "n", "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "ownerReferences": owners},
        "status": {"phase": "Running"},
    }


def _question(kind: tuple[str, str]) -> SearchStrategy[JsonObject]:
    version, name = kind
    metadata = some(
        {
            "generation": GENERATIONS,
            "annotations": st.sampled_from(
                [{}, {SKIP_HEALTH_CHECK: "true"}, {SKIP_HEALTH_CHECK: "false"}]
            ),
            "labels": LABELS,
        },
        {"name": st.just("a"), "namespace": st.just("n")},
    )
    spec, status = _KINDS[kind]
    obj = st.fixed_dictionaries(
        {"apiVersion": st.just(version), "kind": st.just(name), "metadata": metadata},
        optional={"status": status},
    )
    if spec is not None:
        obj = st.tuples(obj, spec).map(lambda parts: {**parts[0], "spec": parts[1]})
    if name != "Deployment":
        return obj.map(lambda value: {"object": value})
    return st.fixed_dictionaries({"object": obj}, optional={"pods": _PODS})


def _numbers(*names: str) -> dict[str, SearchStrategy[Any]]:
    return dict.fromkeys(names, NUMBERS) | {"observedGeneration": GENERATIONS}


def _unique_names(pods: list[JsonObject]) -> list[JsonObject]:
    return [
        {**pod, "metadata": {**pod["metadata"], "name": f"pod-{number}"}}
        for number, pod in enumerate(pods)
    ]


_OWNERS: Final = st.lists(
    st.fixed_dictionaries(
        {
            "apiVersion": st.just(_APPS),
            "kind": st.sampled_from(["ReplicaSet", "StatefulSet", "DaemonSet"]),
            "name": st.just("b"),
            "uid": st.just("1"),
            "controller": st.just(True),  # noqa: FBT003 # a JSON value
        }
    ),
    max_size=1,
)
_PODS: Final = st.lists(
    st.fixed_dictionaries(
        {
            "apiVersion": st.just("v1"),
            "kind": st.just("Pod"),
            "metadata": some(
                {"labels": LABELS, "ownerReferences": _OWNERS},
                {"namespace": st.sampled_from(["n", "n", "m"])},
            ),
            "status": some(
                {
                    "phase": st.sampled_from(
                        ["Pending", "Running", "Succeeded", "Failed", "Unknown"]
                    ),
                    "reason": st.sampled_from(_POD_REASONS),
                    "conditions": conditions(
                        ("Ready", "DisruptionTarget"), ("", "PodCompleted", "Reason")
                    ),
                }
            ),
        }
    ),
    max_size=4,
).map(_unique_names)
_WORKLOAD: Final = {"selector": st.just(_SELECTOR), "template": _TEMPLATE}
_REPLICAS: Final = {"replicas": st.integers(0, 3)}
_MONITORING: Final = (
    some(_REPLICAS),
    some(
        _numbers("availableReplicas", "updatedReplicas", "replicas")
        | {"conditions": conditions(("Available", "Reconciled"))}
    ),
)
_CERTIFICATE: Final = (
    some({}),
    some(
        {
            "state": st.sampled_from(["", "Ready", "Pending", "Error"]),
            "message": TEXTS,
            "observedGeneration": GENERATIONS,
        }
    ),
)
_CRD: Final = (
    some({}),
    some({"conditions": conditions(("NamesAccepted", "Established", "Terminating", "Other"))}),
)
_Strategies = tuple[SearchStrategy[JsonObject] | None, SearchStrategy[JsonObject]]
_KINDS: Final[dict[tuple[str, str], _Strategies]] = {
    (_APPS, "Deployment"): (
        some(_REPLICAS, _WORKLOAD),
        some(
            _numbers("replicas", "readyReplicas", "updatedReplicas", "availableReplicas")
            | {
                "conditions": conditions(
                    ("Available", "Progressing", "ReplicaFailure"),
                    ("", "NewReplicaSetAvailable", "Reason"),
                )
            }
        ),
    ),
    (_APPS, "StatefulSet"): (
        some(
            _REPLICAS
            | {
                "updateStrategy": some(
                    {
                        "type": st.sampled_from(["RollingUpdate", "OnDelete"]),
                        "rollingUpdate": some({"partition": NUMBERS}),
                    }
                )
            },
            _WORKLOAD,
        ),
        some(_numbers("replicas", "readyReplicas", "updatedReplicas", "currentReplicas")),
    ),
    (_APPS, "DaemonSet"): (
        some(
            {
                "updateStrategy": some(
                    {
                        "type": st.sampled_from(["RollingUpdate", "OnDelete"]),
                        "rollingUpdate": some({"maxUnavailable": st.integers(0, 3) | _PERCENTS}),
                    }
                )
            },
            _WORKLOAD,
        ),
        some(
            _numbers(
                "desiredNumberScheduled",
                "currentNumberScheduled",
                "numberMisscheduled",
                "numberUnavailable",
                "updatedNumberScheduled",
            )
        ),
    ),
    (_APPS, "ReplicaSet"): (some({}, _REPLICAS | _WORKLOAD), some(_numbers("readyReplicas"))),
    ("v1", "ReplicationController"): (some({}, _REPLICAS), some(_numbers("readyReplicas"))),
    ("v1", "Pod"): (
        None,
        some({"phase": st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"])}),
    ),
    ("batch/v1", "Job"): (
        some({}),
        some({"conditions": conditions(("Failed", "Complete", "Suspended"))}),
    ),
    ("v1", "Service"): (
        some({"type": st.sampled_from(["ClusterIP", "LoadBalancer", "NodePort"])}),
        some(
            {
                "loadBalancer": some(
                    {
                        "ingress": st.lists(
                            some({"ip": st.just("1.2.3.4"), "hostname": NAMES}), max_size=2
                        )
                    }
                )
            }
        ),
    ),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): _CRD,
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"): _CRD,
    ("monitoring.coreos.com/v1", "Prometheus"): _MONITORING,
    ("monitoring.coreos.com/v1", "Alertmanager"): _MONITORING,
    ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"): (
        some({}),
        some({"conditions": conditions(("ConfigUnsupported", "RecommendationProvided"))}),
    ),
    ("cert.gardener.cloud/v1alpha1", "Certificate"): _CERTIFICATE,
    ("cert.gardener.cloud/v1alpha1", "Issuer"): _CERTIFICATE,
    ("v1", "ConfigMap"): (None, st.just({})),
}
