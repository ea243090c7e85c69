"""Init containers, which prepare a node before its agent starts."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import Images, capable, env, from_config_map, mount, requests, restricted
from pergola.providers.networking.cilium import config_map
from pergola.providers.networking.cilium.render.pods import (
    CONFIG_MOUNT,
    api_server_env,
    identity_env,
)
from pergola.providers.networking.cilium.values import Values

_NSENTER: Final = "nsenter --cgroup=/hostproc/1/ns/cgroup --mount=/hostproc/1/ns/mnt"

# Strict filtering drops packets that arrive on another interface than replies would leave by, as
# those of pods do. In a file, because the node applies its own settings again whenever
# systemd-sysctl restarts, as `apply-sysctl-overwrites` makes it do.
_DISABLE_RP_FILTER: Final = """\
set -o errexit
echo net.ipv4.conf.all.rp_filter=0 > /host/etc/sysctl.d/99-cilium-rp-filter.conf
"""
# Programs that run in the namespaces of the host must be in its file system.
_IN_HOST: Final = """\
set -o errexit -o nounset
cp /usr/bin/{program} /hostbin/{program}
{nsenter} "$BIN_PATH/{program}" {argument}
rm /hostbin/{program}
"""
# Maps in this file system survive a restart of the agent, and connections with them.
_MOUNT_BPF_FS: Final = """\
set -o errexit
if [ "$(stat -f -c %T /sys/fs/bpf)" != bpf_fs ]; then
  mount -t bpf bpf /sys/fs/bpf
fi
"""
# Rules left behind by kube-proxy would still match packets to Services.
_KUBE_PROXY_CLEAN_UP: Final = """\
set -o nounset
for family in iptables ip6tables; do
  if rules="$("$family-save")" && echo "$rules" | grep -q KUBE-SERVICES; then
    echo "$rules" | grep -v KUBE- | "$family-restore"
  fi
done
ip link delete kube-ipvs0 2>/dev/null || true
"""


def containers(values: Values, image: Images) -> list[JsonObject]:
    """Return the init containers in order of execution."""
    agent = image("cilium-agent")
    found = [
        _disable_rp_filter(agent),
        _config(values, agent),
        _mount_cgroup(agent),
        _sysctl_overwrites(agent),
        _mount_bpf_fs(agent),
        _clean_state(values, agent),
        _install_cni(agent),
    ]
    return [*found, _kube_proxy_clean_up(agent)] if values.kube_proxy_replacement else found


def _container(name: str, image: str, security: JsonObject, **content: object) -> JsonObject:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": requests(cpu="10m", memory="32Mi"),
        "securityContext": security,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **content,
    }


def _script(text: str) -> list[str]:
    return ["bash", "-c", text]


def _disable_rp_filter(image: str) -> JsonObject:
    return _container(
        "disable-rp-filter",
        image,
        capable(),
        command=_script(_DISABLE_RP_FILTER),
        volumeMounts=[mount("etc-sysctl-d", "/host/etc/sysctl.d")],
    )


def _config(values: Values, image: str) -> JsonObject:
    return _container(
        "config",
        image,
        restricted() | {"runAsUser": 0},
        command=["cilium-dbg", "build-config", f"--dest={CONFIG_MOUNT}"],
        env=[*identity_env(), *api_server_env(values)],
        volumeMounts=[mount("tmp", "/tmp")],  # noqa: S108 - in the container
    )


def _mount_cgroup(image: str) -> JsonObject:
    return _in_host("mount-cgroup", image, "cilium-mount", "/run/cilium/cgroupv2")


def _sysctl_overwrites(image: str) -> JsonObject:
    return _in_host("apply-sysctl-overwrites", image, "cilium-sysctlfix", "")


def _in_host(name: str, image: str, program: str, argument: str) -> JsonObject:
    script = _IN_HOST.format(program=program, argument=argument, nsenter=_NSENTER)
    return _container(
        name,
        image,
        capable("SYS_ADMIN", "SYS_CHROOT", "SYS_PTRACE", escalates=True),
        command=_script(script),
        env=env(BIN_PATH="/opt/cni/bin"),
        volumeMounts=[
            mount("host-proc", "/hostproc"),
            mount("cni-path", "/hostbin"),
        ],
    )


def _mount_bpf_fs(image: str) -> JsonObject:
    """Mount the file system on the node, which takes a privileged container."""
    return _container(
        "mount-bpf-fs",
        image,
        {"privileged": True, "runAsUser": 0},
        command=_script(_MOUNT_BPF_FS),
        volumeMounts=[mount("bpf-maps", "/sys/fs/bpf", mountPropagation="Bidirectional")],
    )


def _clean_state(values: Values, image: str) -> JsonObject:
    return _container(
        "clean-cilium-state",
        image,
        capable("NET_ADMIN", "SYSLOG", "SYS_ADMIN", "SYS_MODULE", "SYS_RESOURCE", escalates=True),
        command=["/init-container.sh"],
        env=[
            *env(
                CILIUM_ALL_STATE=_setting("clean-cilium-state"),
                CILIUM_BPF_STATE=_setting("clean-cilium-bpf-state"),
                WRITE_CNI_CONF_WHEN_READY=_setting("write-cni-conf-when-ready"),
            ),
            *api_server_env(values),
        ],
        volumeMounts=[
            mount("bpf-maps", "/sys/fs/bpf"),
            mount("cilium-cgroup", "/run/cilium/cgroupv2", mountPropagation="HostToContainer"),
            mount("cilium-run", "/var/run/cilium"),
        ],
    )


def _setting(key: str) -> JsonObject:
    return from_config_map(config_map.NAME, key, optional=True)


def _install_cni(image: str) -> JsonObject:
    return _container(
        "install-cni-binaries",
        image,
        capable("DAC_OVERRIDE", "FOWNER", "CHOWN"),
        command=["/install-plugin.sh"],
        volumeMounts=[mount("cni-path", "/host/opt/cni/bin")],
    )


def _kube_proxy_clean_up(image: str) -> JsonObject:
    return _container(
        "cilium-kube-proxy-clean-up",
        image,
        capable("NET_ADMIN", "NET_RAW"),
        command=_script(_KUBE_PROXY_CLEAN_UP),
        volumeMounts=[
            mount("lib-modules", "/lib/modules", readOnly=True),
            mount("xtables-lock", "/run/xtables.lock"),
        ],
    )
