"""The autoscaler as a component, and the registration of its webhook."""

import base64
from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import authorities, task_names
from pergola.garden.components.component import Component, Managed, Rendered
from pergola.garden.components.vertical_pod_autoscaler.permissions import permissions
from pergola.garden.components.vertical_pod_autoscaler.programs import (
    CERTIFICATE,
    PROGRAMS,
    WEBHOOK,
    objects,
)
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import manifest

NAME: Final = "vpa"

_DESCRIPTION: Final = (
    "Webhooks run in the order of their configurations' names. This one sets the requests of "
    "containers, so it has to see the containers that others add: its name puts it last. It fails "
    "open, because the pods of the autoscaler itself have to start without it."
)


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the certificate of the admission controller."""
    del landscape
    yield authorities.runtime_server(CERTIFICATE, *authorities.service_hosts(WEBHOOK, NAMESPACE))


def absent(landscape: Landscape) -> str | None:
    """Return why the operator does not deploy the autoscaler, or None if it does."""
    if landscape.runtime.settings.vertical_pod_autoscaler.enabled:
        return None
    return "spec.runtimeCluster.settings.verticalPodAutoscaler.enabled is false"


def render(landscape: Landscape) -> Rendered:
    """Return the programs, their permissions and the webhook."""
    rendered = (
        *permissions(),
        *(obj for program in PROGRAMS for obj in objects(program, landscape)),
        _webhook(landscape),
    )
    return Rendered(managed=(Managed(name=NAME, objects=rendered),))


def _webhook(landscape: Landscape) -> JsonObject:
    bundle = landscape.credentials.bundle(authorities.RUNTIME).data["bundle.crt"]
    webhook = {
        "name": "vpa.k8s.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "caBundle": base64.b64encode(bundle).decode(),
            "service": {"name": WEBHOOK, "namespace": NAMESPACE, "port": 443},
        },
        "failurePolicy": "Ignore",
        "matchPolicy": "Exact",
        "reinvocationPolicy": "IfNeeded",
        "rules": [
            _rule("", "v1", "pods", "CREATE"),
            _rule("autoscaling.k8s.io", "*", "verticalpodautoscalers", "CREATE", "UPDATE"),
        ],
        "sideEffects": "None",
        "timeoutSeconds": 10,
    }
    return manifest(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "zzz-vpa-webhook-config-source",
        labels={"remediation.webhook.shoot.gardener.cloud/exclude": "true"},
        annotations={"gardener.cloud/description": _DESCRIPTION},
        webhooks=[webhook],
    )


def _rule(group: str, version: str, resource: str, *operations: str) -> JsonObject:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": [resource],
        "scope": "*",
    }


VERTICAL_POD_AUTOSCALER: Final = Component(
    name=NAME,
    deploy=task_names.VERTICAL_POD_AUTOSCALER,
    absent=absent,
    credentials=credentials,
    render=render,
)
