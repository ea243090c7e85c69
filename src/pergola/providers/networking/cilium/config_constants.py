"""Keys of `cilium-config` that no option of a Shoot changes, with the values of the original.

Many of them restate a default of the agents. They stay, because a new version of cilium may change
its defaults, and an upgrade must not change how a running cluster treats its traffic.
"""

from typing import Final

from pergola.providers.networking.cilium import label_filter, ports

_CLUSTER: Final = {
    "agent-not-ready-taint-key": "node.cilium.io/agent-not-ready",
    "annotate-k8s-node": "true",
    "cilium-endpoint-gc-interval": "5m0s",
    "cluster-name": "default",
    "clustermesh-cache-ttl": "0s",
    "clustermesh-enable-endpoint-sync": "false",
    "clustermesh-enable-mcs-api": "false",
    "clustermesh-mcs-api-install-crds": "true",
    "default-lb-service-ipam": "none",
    "enable-drift-checker": "true",
    "enable-dynamic-config": "true",
    "enable-lb-ipam": "true",
    "enable-node-selector-labels": "false",
    "enable-well-known-identities": "false",
    "identity-allocation-mode": "crd",
    "identity-management-mode": "agent",
    "label-prefix-file": f"{label_filter.MOUNT}/{label_filter.KEY}",
    "nodes-gc-interval": "5m0s",
    "remove-cilium-node-taints": "true",
    "set-cilium-is-up-condition": "true",
    "set-cilium-node-taints": "true",
    "unmanaged-pod-watcher-interval": "15s",
}
_POLICY: Final = {
    "enable-endpoint-lockdown-on-policy-overflow": "false",
    "enable-k8s-networkpolicy": "true",
    "enable-non-default-deny-policies": "true",
    "enable-policy": "default",
    "enable-source-ip-verification": "true",
    "mesh-auth-enabled": "false",
    "mesh-auth-gc-interval": "5m0s",
    "mesh-auth-queue-size": "1024",
    "mesh-auth-rotated-identities-queue-size": "1024",
    "policy-cidr-match-mode": "nodes",
    "policy-default-local-cluster": "true",
    "policy-deny-response": "none",
}
# Resizing a map discards its content, and with it connections and their backends.
_MAPS: Final = {
    "bpf-ct-global-any-max": "262144",
    "bpf-ct-global-tcp-max": "524288",
    "bpf-distributed-lru": "false",
    "bpf-lb-map-max": "65536",
    "bpf-map-dynamic-size-ratio": "0.0025",
    "bpf-nat-global-max": "524288",
    "bpf-policy-map-max": "65536",
    "bpf-policy-stats-map-max": "65536",
    "nat-map-stats-entries": "32",
    "nat-map-stats-interval": "30s",
    "preallocate-bpf-maps": "false",
}
_DATAPATH: Final = {
    "bpf-root": "/sys/fs/bpf",
    "cgroup-root": "/run/cilium/cgroupv2",
    "cni-log-file": "/var/run/cilium/cilium-cni.log",
    "datapath-mode": "veth",
    "direct-routing-skip-unreachable": "false",
    "egress-gateway-reconciliation-trigger-interval": "1s",
    "enable-ipv4-big-tcp": "false",
    "enable-ipv6-big-tcp": "false",
    "enable-masquerade-to-route-source": "false",
    "enable-sctp": "false",
    "enable-tcx": "true",
    "enable-vtep": "false",
    "enable-xt-socket-fallback": "true",
    "install-iptables-rules": "true",
    "install-no-conntrack-iptables-rules": "false",
    "iptables-random-fully": "true",
    "packetization-layer-pmtud-mode": "blackhole",
    "procfs": "/host/proc",
    "tunnel-source-port-range": "0-0",
    "write-cni-conf-when-ready": "/host/etc/cni/net.d/05-cilium.conflist",
}
_SERVICES: Final = {
    "bpf-lb-external-clusterip": "false",
    "enable-auto-protect-node-port-range": "true",
    "enable-no-service-endpoints-routable": "true",
    "enable-service-topology": "true",
    "node-port-bind-protection": "false",
    "service-no-backend-response": "reject",
}
_DNS_PROXY: Final = {
    "dnsproxy-enable-transparent-mode": "true",
    "dnsproxy-socket-linger-timeout": "10",
    "tofqdns-dns-reject-response-code": "refused",
    "tofqdns-enable-dns-compression": "true",
    "tofqdns-endpoint-max-ip-per-hostname": "1000",
    "tofqdns-idle-connection-grace-period": "0s",
    "tofqdns-max-deferred-connection-deletes": "10000",
    "tofqdns-preallocate-identities": "true",
    "tofqdns-proxy-response-max-delay": "100ms",
}
_ENVOY: Final = {
    "enable-l7-proxy": "true",
    "envoy-access-log-buffer-size": "4096",
    "envoy-base-id": "0",
    "envoy-keep-cap-netbindservice": "false",
    "external-envoy-proxy": "true",
    "http-retry-count": "3",
    "http-stream-idle-timeout": "300",
    "proxy-cluster-max-connections": "1024",
    "proxy-cluster-max-requests": "1024",
    "proxy-connect-timeout": "2",
    "proxy-idle-timeout-seconds": "60",
    "proxy-initial-fetch-timeout": "30",
    "proxy-max-active-downstream-connections": "50000",
    "proxy-max-concurrent-retries": "128",
    "proxy-max-connection-duration-seconds": "0",
    "proxy-max-requests-per-connection": "0",
    "proxy-use-original-source-address": "true",
    "proxy-xff-num-trusted-hops-egress": "0",
    "proxy-xff-num-trusted-hops-ingress": "0",
}
_OBSERVABILITY: Final = {
    "agent-health-port": str(ports.AGENT_HEALTH),
    "bpf-events-drop-enabled": "true",
    "bpf-events-policy-verdict-enabled": "true",
    "bpf-events-trace-enabled": "true",
    "controller-group-metrics": "write-cni-file sync-host-ips sync-lb-maps-with-k8s-services",
    "enable-endpoint-health-checking": "true",
    "enable-metrics": "true",
    "health-check-icmp-failure-threshold": "3",
    "metrics-sampling-interval": "5m",
    "monitor-aggregation": "medium",
    "monitor-aggregation-flags": "all",
    "monitor-aggregation-interval": "5s",
    "operator-prometheus-serve-addr": f":{ports.OPERATOR_METRICS}",
    "prometheus-serve-addr": f":{ports.AGENT_METRICS}",
}

CONSTANTS: Final = {
    **_CLUSTER,
    **_POLICY,
    **_MAPS,
    **_DATAPATH,
    **_SERVICES,
    **_DNS_PROXY,
    **_ENVOY,
    **_OBSERVABILITY,
}
