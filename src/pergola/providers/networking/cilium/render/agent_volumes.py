"""Volumes of the agent's pods, and where the agent mounts them."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import (
    config_map_volume,
    empty_dir,
    host_path,
    mount,
    projected,
    secret_files,
)
from pergola.providers.networking.cilium import config_map, label_filter
from pergola.providers.networking.cilium.values import Values

CLUSTER_MESH: Final = "/var/lib/cilium/clustermesh"
ENVOY_SOCKETS: Final = "/var/run/cilium/envoy/sockets"
_CREATE: Final = "DirectoryOrCreate"


def mounts(values: Values) -> list[JsonObject]:
    """Return the mounts of the agent's container."""
    found = [
        mount("bpf-maps", "/sys/fs/bpf", mountPropagation="HostToContainer"),
        mount("cilium-cgroup", "/run/cilium/cgroupv2"),
        mount("cilium-run", "/var/run/cilium"),
        mount("cilium-netns", "/var/run/cilium/netns", mountPropagation="HostToContainer"),
        mount("envoy-sockets", ENVOY_SOCKETS),
        mount("etc-cni-netd", "/host/etc/cni/net.d"),
        mount("host-proc-sys-net", "/host/proc/sys/net"),
        mount("host-proc-sys-kernel", "/host/proc/sys/kernel"),
        mount("lib-modules", "/lib/modules", readOnly=True),
        mount("xtables-lock", "/run/xtables.lock"),
        mount("tmp", "/tmp"),  # noqa: S108 - in the container
        mount("label-prefix", label_filter.MOUNT, readOnly=True),
        mount("clustermesh-secrets", CLUSTER_MESH, readOnly=True),
    ]
    if values.hubble:
        found.append(mount("hubble-tls", config_map.HUBBLE_TLS, readOnly=True))
    return found


def volumes(values: Values) -> list[JsonObject]:
    """Return the volumes of all containers of the pod."""
    found = [
        empty_dir("tmp"),
        host_path("bpf-maps", "/sys/fs/bpf", _CREATE),
        host_path("cilium-cgroup", "/run/cilium/cgroupv2", _CREATE),
        host_path("cilium-run", "/var/run/cilium", _CREATE),
        host_path("cilium-netns", "/var/run/netns", _CREATE),
        host_path("envoy-sockets", ENVOY_SOCKETS, _CREATE),
        host_path("cni-path", "/opt/cni/bin", _CREATE),
        host_path("etc-cni-netd", "/etc/cni/net.d", _CREATE),
        host_path("etc-sysctl-d", "/etc/sysctl.d", _CREATE),
        host_path("host-proc", "/proc", "Directory"),
        host_path("host-proc-sys-net", "/proc/sys/net", "Directory"),
        host_path("host-proc-sys-kernel", "/proc/sys/kernel", "Directory"),
        host_path("lib-modules", "/lib/modules"),
        host_path("xtables-lock", "/run/xtables.lock", "FileOrCreate"),
        config_map_volume("label-prefix", label_filter.NAME, defaultMode=0o444),
        _cluster_mesh(),
    ]
    return [*found, _hubble_tls()] if values.hubble else found


def _cluster_mesh() -> JsonObject:
    """Return the volume of Secrets that users create to connect the Shoot to other clusters."""
    return projected(
        "clustermesh-secrets",
        {"secret": {"name": "cilium-clustermesh", "optional": True}},
        secret_files(
            "clustermesh-apiserver-remote-cert",
            {
                "tls.key": "common-etcd-client.key",
                "tls.crt": "common-etcd-client.crt",
                "ca.crt": "common-etcd-client-ca.crt",
            },
            optional=True,
        ),
        secret_files(
            "clustermesh-apiserver-local-cert",
            {
                "tls.key": "local-etcd-client.key",
                "tls.crt": "local-etcd-client.crt",
                "ca.crt": "local-etcd-client-ca.crt",
            },
            optional=True,
        ),
        mode=0o400,
    )


def _hubble_tls() -> JsonObject:
    files = {"tls.crt": "server.crt", "tls.key": "server.key", "ca.crt": "client-ca.crt"}
    source = secret_files("hubble-server-certs", files, optional=True)
    return projected("hubble-tls", source, mode=0o400)
