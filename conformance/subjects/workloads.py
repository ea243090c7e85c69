"""The webhook that spreads replicas over nodes and zones."""

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.kubernetes import some
from conformance.strategies.pods import NAMESPACE, PODS
from conformance.subjects.webhooks import WebhookSubject, asked, request
from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks.facts.high_availability import (
    FAILURE_TOLERANCE,
    HOST_SPREAD,
    REPLICAS,
    TYPE,
    ZONE_PINNING,
    ZONES,
)
from pergola.resource_manager.webhooks.high_availability_config.review import PATH

_SELECTOR: Final = {"matchLabels": {"app": "a"}}
_BOOLEANS: Final = st.sampled_from(["true", "false", "1", "T", "", "yes"])
_NUMBERS: Final = st.sampled_from(["", "0", "1", "3", "+4", "-1", "007", "1_0", " 2", "x", "2.0"])
_METADATA: Final = some(
    {
        "labels": some({TYPE: st.sampled_from(["controller", "server", "", "other"])}),
        "annotations": some({REPLICAS: _NUMBERS, HOST_SPREAD: _BOOLEANS}),
    },
    {"name": st.sampled_from(["a", "b"]), "namespace": st.just(NAMESPACE)},
)


def _workload(**fields: SearchStrategy[Any]) -> SearchStrategy[JsonObject]:
    spec = st.fixed_dictionaries(
        {
            "replicas": st.integers(0, 6),
            "selector": st.just(_SELECTOR),
            "template": PODS.map(_template),
            **fields,
        }
    )
    return st.fixed_dictionaries({"metadata": _METADATA, "spec": spec})


def _template(pod: JsonObject) -> JsonObject:
    labels = {**pod["metadata"].get("labels", {}), **_SELECTOR["matchLabels"]}
    return {"metadata": {**pod["metadata"], "labels": labels}, "spec": pod["spec"]}


_TARGET_REF: Final = st.fixed_dictionaries(
    {
        "apiVersion": st.sampled_from(["apps/v1", "apps/v1beta1"]),
        "kind": st.sampled_from(["Deployment", "StatefulSet"]),
        "name": st.sampled_from(["a", "b"]),
    }
)
# An API server refuses a maximum below the minimum.
_AUTOSCALER_SPEC: Final = st.builds(
    lambda least, more, target: {
        **({} if least is None else {"minReplicas": least}),
        "maxReplicas": max(1, (least or 0) + more),
        "scaleTargetRef": target,
    },
    st.none() | st.integers(0, 5),
    st.integers(0, 3),
    _TARGET_REF,
)
_WRITES: Final = ("CREATE", "UPDATE")
_REQUESTS: Final = st.one_of(
    request(("apps", "v1", "Deployment"), "deployments", _workload(), _WRITES),
    request(
        ("apps", "v1", "StatefulSet"),
        "statefulsets",
        _workload(serviceName=st.just("a")),
        _WRITES,
    ),
    request(
        ("autoscaling", "v2", "HorizontalPodAutoscaler"),
        "horizontalpodautoscalers",
        st.fixed_dictionaries({"metadata": _METADATA, "spec": _AUTOSCALER_SPEC}),
        _WRITES,
    ),
)
_TARGET: Final = st.tuples(
    some(
        {
            FAILURE_TOLERANCE: st.sampled_from(["", "node", "zone", "other"]),
            ZONES: st.sampled_from(["", "a", "a,b", "b,a,,a", "a,b,c", ","]),
            ZONE_PINNING: _BOOLEANS,
        }
    ),
    st.integers(0, 3),
    st.lists(_AUTOSCALER_SPEC, max_size=2),
).map(
    lambda parts: [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "annotations": parts[0]},
        },
        *(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}"}}
            for number in range(parts[1])
        ),
        *(
            {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": f"hpa-{number}", "namespace": NAMESPACE},
                "spec": spec,
            }
            for number, spec in enumerate(parts[2])
        ),
    ]
)

_SETTINGS: Final = some(
    {
        "defaultNotReadyTolerationSeconds": st.sampled_from([0, 60]),
        "defaultUnreachableTolerationSeconds": st.sampled_from([0, 120]),
    }
)

WORKLOADS_SUBJECT: Final = WebhookSubject(
    "workloads",
    "Webhook for high availability",
    ("pergola.resource_manager.webhooks.high_availability_config",),
    st.builds(asked, st.just((PATH, "highAvailabilityConfig")), _SETTINGS, _TARGET, _REQUESTS),
)
"""The subject."""
