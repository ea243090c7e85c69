"""Ports of cilium's programs on their nodes."""

from typing import Final

AGENT_METRICS: Final = 9090
AGENT_HEALTH: Final = 9879
HUBBLE_METRICS: Final = 9091
HUBBLE: Final = 4244
OPERATOR_METRICS: Final = 6942
OPERATOR_HEALTH: Final = 9234
ENVOY_METRICS: Final = 9964
ENVOY_HEALTH: Final = 9878
KUBE_PROXY_HEALTH: Final = 10256
