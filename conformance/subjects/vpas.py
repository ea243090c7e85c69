"""The webhook that lets vertical pod autoscalers resize pods in place."""

from typing import Final

from hypothesis import strategies as st

from conformance.strategies.kubernetes import LABELS, some
from conformance.strategies.pods import NAMESPACE
from conformance.subjects.webhooks import WebhookSubject, asked, request
from pergola.resource_manager.webhooks.vpa_in_place_updates import PATH

_MODES: Final = st.sampled_from(
    ["Auto", "Recreate", "Off", "Initial", "InPlaceOrRecreate", "InPlace", "other"]
)
_AUTOSCALERS: Final = st.fixed_dictionaries(
    {
        "metadata": some(
            {"labels": LABELS}, {"name": st.just("a"), "namespace": st.just(NAMESPACE)}
        ),
        "spec": some(
            {
                "updatePolicy": some({"updateMode": _MODES, "minReplicas": st.integers(1, 2)}),
                "targetRef": st.just({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}),
            }
        ),
    }
)

_REQUESTS: Final = request(
    ("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler"),
    "verticalpodautoscalers",
    _AUTOSCALERS,
    ("CREATE", "UPDATE"),
)

VPAS_SUBJECT: Final = WebhookSubject(
    "vpas",
    "Webhook for vertical pod autoscalers",
    ("pergola.resource_manager.webhooks.vpa_in_place_updates",),
    _REQUESTS.map(lambda review: asked((PATH, "vpaInPlaceUpdates"), {}, (), review)),
)
"""The subject."""
