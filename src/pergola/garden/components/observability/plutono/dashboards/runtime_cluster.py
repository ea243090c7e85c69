"""The dashboards of the runtime cluster: resources and logs of the garden's components."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.observability.plutono.dashboards.panels import (
    choice,
    dashboard,
    graph,
    logs,
    table,
    text_choice,
)

_CONTAINERS: Final = 'namespace=~"$namespace",pod=~"$pod",container!~"POD|"'
_PODS: Final = 'namespace=~"$namespace",pod=~"$pod"'
_RECOMMENDED: Final = (
    "kube_customresource_verticalpodautoscaler_status_recommendation_containerrecommendations"
)
_NAMESPACE: Final = choice("namespace", "Namespace", "label_values(kube_pod_info, namespace)")
_POD: Final = choice("pod", "Pod", 'label_values(kube_pod_info{namespace=~"$namespace"}, pod)')


def workloads() -> JsonObject:
    """Return the dashboard of pods and containers."""
    by = "sum by (pod, container)"
    return dashboard(
        "garden-workloads",
        "Garden: Workloads",
        [
            graph(
                "CPU",
                {
                    "{{pod}} {{container}}": f"{by} "
                    f"(rate(container_cpu_usage_seconds_total{{{_CONTAINERS}}}[5m]))"
                },
                unit="short",
            ),
            graph(
                "Memory",
                {
                    "{{pod}} {{container}}": f"{by} "
                    f"(container_memory_working_set_bytes{{{_CONTAINERS}}})"
                },
                unit="bytes",
            ),
            graph(
                "Memory that is recommended",
                {
                    "{{verticalpodautoscaler}} {{container}}": (
                        f"max by (verticalpodautoscaler, container) ({_RECOMMENDED}_target_memory"
                        '{namespace=~"$namespace"})'
                    )
                },
                unit="bytes",
            ),
            graph(
                "Network",
                {
                    "{{pod}} in": "sum by (pod) "
                    f"(rate(container_network_receive_bytes_total{{{_PODS}}}[5m]))",
                    "{{pod}} out": "-sum by (pod) "
                    f"(rate(container_network_transmit_bytes_total{{{_PODS}}}[5m]))",
                },
                unit="Bps",
            ),
            table(
                "Restarts within a day",
                f"{by} (increase(kube_pod_container_status_restarts_total{{{_PODS}}}[1d])) > 0",
                ("pod", "container"),
            ),
            table(
                "Pods that neither run nor succeeded",
                "sum by (namespace, pod, phase) "
                f'(kube_pod_status_phase{{{_PODS},phase!~"Running|Succeeded"}}) > 0',
                ("namespace", "pod", "phase"),
            ),
        ],
        _NAMESPACE,
        _POD,
    )


def pod_logs() -> JsonObject:
    """Return the dashboard of pods' logs."""
    query = '{namespace_name=~"$namespace",pod_name=~"$pod"} |~ "$search"'
    return dashboard(
        "garden-pod-logs",
        "Garden: Logs of Pods",
        [logs("Logs", query)],
        _NAMESPACE,
        _POD,
        text_choice("search", "Search"),
        since="now-30m",
    )
