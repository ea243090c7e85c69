"""The agent: a DaemonSet that gives every node its network."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import (
    HEADLESS,
    KUBE_SYSTEM,
    LINUX,
    ON_EVERY_NODE,
    RUNTIME_DEFAULT,
    TOLERATE_EVERYTHING,
    Images,
    at_most_one_per_node,
    selector,
    service,
    service_port,
)
from pergola.providers.networking.cilium import ports
from pergola.providers.networking.cilium.render import agent_init, agent_volumes, checksums
from pergola.providers.networking.cilium.render.agent_container import container
from pergola.providers.networking.cilium.render.pods import CRITICAL, app, in_kube_system, scraped
from pergola.providers.networking.cilium.render.snat import sidecars
from pergola.providers.networking.cilium.values import Values

NAME: Final = "cilium"
SELECTOR: Final = {"k8s-app": "cilium"}
HUBBLE_METRICS: Final = "networking.extensions.gardener.cloud/hubble-metrics"
"""An annotation that the scrape configuration for metrics of flows looks for."""


def agent(values: Values, image: Images, sums: dict[str, str]) -> JsonObject:
    """Return the DaemonSet.

    Args:
        sums: annotations of the pods that change with their configuration.
    """
    labels = {**app(NAME), "app.kubernetes.io/name": "cilium-agent", **CRITICAL}
    return in_kube_system(
        "apps/v1",
        "DaemonSet",
        NAME,
        labels=labels,
        spec={
            "revisionHistoryLimit": 2,
            "selector": selector(SELECTOR),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
            "template": {
                "metadata": {"labels": labels, "annotations": _annotations(values, sums)},
                "spec": _pod(values, image),
            },
        },
    )


def hubble_metrics() -> JsonObject:
    """Return the Service through which scrapers in the Shoot read the agents' flow metrics."""
    return service(
        "hubble-metrics",
        KUBE_SYSTEM,
        SELECTOR,
        service_port("hubble-metrics", ports.HUBBLE_METRICS, "hubble-metrics"),
        labels={"k8s-app": "hubble"},
        annotations=scraped(ports.HUBBLE_METRICS),
        **HEADLESS,
    )


def pod_checksums(cilium_config: JsonObject, label_prefixes: JsonObject) -> dict[str, str]:
    """Return the annotations that restart the agents when the configuration changes."""
    return {
        checksums.CILIUM: checksums.checksum(cilium_config),
        checksums.LABEL_PREFIX: checksums.checksum(label_prefixes),
    }


def _annotations(values: Values, sums: dict[str, str]) -> dict[str, str]:
    return {
        **sums,
        **scraped(ports.AGENT_METRICS),
        "kubectl.kubernetes.io/default-container": "cilium-agent",
        **({HUBBLE_METRICS: "true"} if values.hubble else {}),
    }


def _pod(values: Values, image: Images) -> JsonObject:
    return {
        "hostNetwork": True,
        "restartPolicy": "Always",
        "priorityClassName": ON_EVERY_NODE,
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": LINUX,
        "tolerations": list(TOLERATE_EVERYTHING),
        # Otherwise two agents could fight over one node, as when replacing another DaemonSet.
        "affinity": at_most_one_per_node(SELECTOR),
        "securityContext": {
            "seccompProfile": RUNTIME_DEFAULT,
            "appArmorProfile": {"type": "Unconfined"},
        },
        "initContainers": agent_init.containers(values, image),
        "containers": [container(values, image), *sidecars(values, image)],
        "volumes": agent_volumes.volumes(values),
    }
