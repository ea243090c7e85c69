"""Go modules whose programs are built only on request: for an image, or for a test that runs one.

`pergola sandbox build` leaves them out, because together they take an hour.
"""

from typing import Final

from pergola.sandbox.module import GO_MODULES, Folder, Module, Patch, kubernetes_stamps

ETCD_DRUID: Final = "etcd-druid"
ETCD_BACKUP_RESTORE: Final = "etcd-backup-restore"
ETCD_WRAPPER: Final = "etcd-wrapper"
GARDENER_APISERVER: Final = "gardener-apiserver"
GARDENER_CONTROLLER_MANAGER: Final = "gardener-controller-manager"
GARDENER_SCHEDULER: Final = "gardener-scheduler"
GARDENER_ADMISSION_CONTROLLER: Final = "gardener-admission-controller"
GARDENER_RESOURCE_MANAGER: Final = "gardener-resource-manager"
GARDENLET: Final = "gardenlet"
GARDENLET_CHART: Final = "gardenlet-chart"
GARDENADM: Final = "gardenadm"
PREVIOUS_GARDENLET: Final = "previous-gardenlet"
PREVIOUS_GARDENLET_CHART: Final = "previous-gardenlet-chart"
PROVIDER_LOCAL: Final = "gardener-extension-provider-local"
PROVIDER_LOCAL_CHART: Final = "provider-local-chart"
PROVIDER_AWS: Final = "gardener-extension-provider-aws"
PROVIDER_AWS_CHART: Final = "provider-aws-chart"
MACHINE_CONTROLLER_MANAGER: Final = "machine-controller-manager"
MACHINE_CONTROLLER_AWS: Final = "machine-controller-aws"
MACHINE_CRDS: Final = "machine-crds"
MACHINE_CONTROLLER_MANAGER_LOCAL: Final = "machine-controller-manager-provider-local"
AWS_CLOUD_CONTROLLER_MANAGER: Final = "aws-cloud-controller-manager"
CSI_DRIVER_AWS: Final = "csi-driver-aws"
CSI_PROVISIONER: Final = "csi-provisioner"
CSI_ATTACHER: Final = "csi-attacher"
TERMINAL_CONTROLLER_MANAGER: Final = "terminal-controller-manager"
HELM: Final = "helm"
KUBECTL: Final = "kubectl"
REGISTRY: Final = "registry"
CRANE: Final = "crane"
VPA_RECOMMENDER: Final = "vpa-recommender"
VPA_UPDATER: Final = "vpa-updater"
VPA_ADMISSION_CONTROLLER: Final = "vpa-admission-controller"
KUBE_STATE_METRICS: Final = "kube-state-metrics"
KUBE_RBAC_PROXY: Final = "kube-rbac-proxy"
PROMETHEUS_OPERATOR: Final = "prometheus-operator"
PROMETHEUS_CONFIG_RELOADER: Final = "prometheus-config-reloader"
PROMETHEUS_CRDS: Final = "prometheus-crds"
PROMETHEUS: Final = "prometheus"
PROMTOOL: Final = "promtool"
ALERTMANAGER: Final = "alertmanager"
BLACKBOX_EXPORTER: Final = "blackbox-exporter"
SHARDER: Final = "sharder"
SHARDING_CRDS: Final = "sharding-crds"
GARDENER_CONTROL_PLANE: Final = (
    GARDENER_APISERVER,
    GARDENER_ADMISSION_CONTROLLER,
    GARDENER_CONTROLLER_MANAGER,
    GARDENER_SCHEDULER,
)
LANDSCAPE: Final = (*GARDENER_CONTROL_PLANE, GARDENLET, GARDENLET_CHART, HELM, REGISTRY)
"""The programs of a landscape, in addition to those of its clusters."""

_CLOUD: Final = "k8s.io/cloud-provider-aws"
_CSI: Final = "github.com/kubernetes-csi"
_DISTRIBUTION: Final = "github.com/distribution/distribution/v3"
_EXTENSION: Final = "github.com/gardener/gardener-extension-provider-aws"
_MACHINES: Final = "github.com/gardener/machine-controller-manager"
_OPERATOR: Final = "github.com/prometheus-operator/prometheus-operator"
_SHARDING: Final = "github.com/timebertt/kubernetes-controller-sharding"
_PROMETHEUS_STAMPS: Final = {"github.com/prometheus/common/version.Version": "{number}"}

DRUID: Final = Module(
    directory=GO_MODULES / "etcd-druid",
    packages={ETCD_DRUID: "github.com/gardener/etcd-druid/cmd"},
    versioned="github.com/gardener/etcd-druid",
    stamps={"github.com/gardener/etcd-druid/internal/version.gitVersion": "{version}"},
    unlisted=("github.com/gardener/etcd-druid", "github.com/gardener/etcd-druid/api"),
)
# One module for both, so that the etcd that runs is the one that validates and restores its data.
BACKUP_RESTORE: Final = Module(
    directory=GO_MODULES / "etcd-backup-restore",
    packages={
        ETCD_BACKUP_RESTORE: "github.com/gardener/etcd-backup-restore",
        ETCD_WRAPPER: "./etcd-wrapper",
    },
    versioned="github.com/gardener/etcd-backup-restore",
    stamps={"github.com/gardener/etcd-backup-restore/pkg/version.Version": "{version}"},
    unlisted=("github.com/gardener/etcd-backup-restore", "go.etcd.io"),
)
GARDENER: Final = Module(
    directory=GO_MODULES / "gardener",
    packages={
        name: f"github.com/gardener/gardener/cmd/{name}"
        for name in (
            GARDENER_APISERVER,
            GARDENER_CONTROLLER_MANAGER,
            GARDENER_SCHEDULER,
            GARDENER_ADMISSION_CONTROLLER,
        )
    },
    versioned="github.com/gardener/gardener",
    stamps=kubernetes_stamps("k8s.io/component-base/version"),
)
# Apart from the others, so that they are built without what only gardenlet requires.
SEED_AGENT: Final = Module(
    directory=GO_MODULES / "gardenlet",
    packages={GARDENLET: "github.com/gardener/gardener/cmd/gardenlet"},
    versioned="github.com/gardener/gardener",
    stamps=kubernetes_stamps("k8s.io/component-base/version"),
    # The chart by which the operator deploys it, for tests: `binaries.find((GARDENLET_CHART,))`.
    folders={GARDENLET_CHART: Folder("github.com/gardener/gardener", "charts/gardener/gardenlet")},
    # Requests for snapshots of etcds go to their Services, which only the node's proxy reaches.
    patches=(
        Patch(
            "github.com/gardener/gardener",
            "pkg/component/shared/etcd.go",
            "Transport: &http.Transport{",
            "Transport: &http.Transport{Proxy: http.ProxyFromEnvironment,",
        ),
    ),
)
# The extension of provider-local, and what makes machines of its workers, with its chart.
LOCAL_PROVIDER: Final = Module(
    directory=GO_MODULES / "provider-local",
    packages={
        PROVIDER_LOCAL: f"github.com/gardener/gardener/cmd/{PROVIDER_LOCAL}",
        MACHINE_CONTROLLER_MANAGER_LOCAL: (
            f"github.com/gardener/gardener/cmd/{MACHINE_CONTROLLER_MANAGER_LOCAL}"
        ),
    },
    versioned="github.com/gardener/gardener",
    stamps=kubernetes_stamps("k8s.io/component-base/version"),
    folders={
        PROVIDER_LOCAL_CHART: Folder(
            "github.com/gardener/gardener", "charts/gardener/provider-local"
        )
    },
    # After each reconciliation, it executes a command in the containers of machines.
    patches=(
        Patch(
            "github.com/gardener/gardener",
            "pkg/provider-local/controller/worker/machines.go",
            "for _, pod := range podList.Items {",
            "for _, pod := range podList.Items[:0] {",
        ),
    ),
)
# The original's extension for AWS, from which Pergola takes over in tests, with its chart. The
# folder `driver` stands in for the types of a module that cannot be had.
AWS_PROVIDER: Final = Module(
    directory=GO_MODULES / "provider-aws",
    packages={PROVIDER_AWS: f"{_EXTENSION}/cmd/{PROVIDER_AWS}"},
    versioned=_EXTENSION,
    stamps=kubernetes_stamps("k8s.io/component-base/version"),
    folders={PROVIDER_AWS_CHART: Folder(_EXTENSION, "charts/gardener-extension-provider-aws")},
)
# Machines of any cloud, and of AWS. The latter is a stand-in of our own, because the original's
# module cannot be had.
MACHINES: Final = Module(
    directory=GO_MODULES / "machine-controller",
    packages={
        MACHINE_CONTROLLER_MANAGER: f"{_MACHINES}/cmd/{MACHINE_CONTROLLER_MANAGER}",
        MACHINE_CONTROLLER_AWS: "./aws",
    },
    versioned=_MACHINES,
    folders={MACHINE_CRDS: Folder(_MACHINES, "kubernetes/crds")},
)
# For tests of what Pergola renders for it.
CLOUD_CONTROLLERS: Final = Module(
    directory=GO_MODULES / "cloud-provider-aws",
    packages={AWS_CLOUD_CONTROLLER_MANAGER: f"{_CLOUD}/cmd/{AWS_CLOUD_CONTROLLER_MANAGER}"},
    versioned=_CLOUD,
    stamps=kubernetes_stamps("k8s.io/component-base/version"),
)
# The originals' controllers of volumes, and a driver of EBS for them. The latter is a stand-in of
# our own, because the original's module cannot be had.
VOLUMES: Final = Module(
    directory=GO_MODULES / "csi-aws",
    packages={
        CSI_DRIVER_AWS: "./driver",
        CSI_PROVISIONER: f"{_CSI}/external-provisioner/v6/cmd/{CSI_PROVISIONER}",
        CSI_ATTACHER: f"{_CSI}/external-attacher/v4/cmd/{CSI_ATTACHER}",
    },
    stamps={"main.version": "{version}"},
    versioned=f"{_CSI}/external-provisioner/v6",
)
# Of self-hosted Shoots, as far as a test can follow them without a machine; no image has it.
SELF_HOSTED: Final = Module(
    directory=GO_MODULES / "gardenadm",
    packages={GARDENADM: "github.com/gardener/gardener/cmd/gardenadm"},
    versioned="github.com/gardener/gardener",
    stamps=kubernetes_stamps("k8s.io/component-base/version"),
)
# Of the release before, to be upgraded in a test; no image has it.
PREVIOUS_SEED_AGENT: Final = Module(
    directory=GO_MODULES / "previous-gardenlet",
    packages={PREVIOUS_GARDENLET: "github.com/gardener/gardener/cmd/gardenlet"},
    versioned="github.com/gardener/gardener",
    stamps=kubernetes_stamps("k8s.io/component-base/version"),
    folders={
        PREVIOUS_GARDENLET_CHART: Folder(
            "github.com/gardener/gardener", "charts/gardener/gardenlet"
        )
    },
)
# For comparison with Pergola's in a benchmark; no image has it.
ORIGINAL_RESOURCE_MANAGER: Final = Module(
    directory=GO_MODULES / "gardener-resource-manager",
    packages={
        GARDENER_RESOURCE_MANAGER: "github.com/gardener/gardener/cmd/gardener-resource-manager"
    },
    versioned="github.com/gardener/gardener",
    stamps=kubernetes_stamps("k8s.io/component-base/version"),
)
TERMINALS: Final = Module(
    directory=GO_MODULES / "terminal-controller-manager",
    packages={TERMINAL_CONTROLLER_MANAGER: "github.com/gardener/terminal-controller-manager"},
    versioned="github.com/gardener/terminal-controller-manager",
)
# In Pergola's own image, whose operator renders charts with it.
CHARTS: Final = Module(
    directory=GO_MODULES / "helm",
    packages={HELM: "helm.sh/helm/v3/cmd/helm"},
    versioned="helm.sh/helm/v3",
    stamps={"helm.sh/helm/v3/internal/version.version": "{version}"},
)
# For tests of the documentation on machines without kubectl; no image has it.
COMMAND_LINE: Final = Module(
    directory=GO_MODULES / "kubectl",
    packages={KUBECTL: "k8s.io/kubernetes/cmd/kubectl"},
    versioned="k8s.io/kubernetes",
    stamps=kubernetes_stamps("k8s.io/component-base/version"),
)
# A program for tests, which no image has: `binaries.find((REGISTRY,))`.
OCI_REGISTRY: Final = Module(
    directory=GO_MODULES / "registry",
    packages={REGISTRY: f"{_DISTRIBUTION}/cmd/registry"},
    versioned=_DISTRIBUTION,
    stamps={f"{_DISTRIBUTION}/version.version": "{version}"},
)
# With which a release is published, for its test; no image has it.
REGISTRY_CLIENT: Final = Module(
    directory=GO_MODULES / "crane",
    packages={CRANE: "github.com/google/go-containerregistry/cmd/crane"},
    versioned="github.com/google/go-containerregistry",
    stamps={"github.com/google/go-containerregistry/cmd/crane/cmd.Version": "{version}"},
)
VERTICAL_AUTOSCALING: Final = Module(
    directory=GO_MODULES / "vertical-pod-autoscaler",
    packages={
        name: f"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/{name.removeprefix('vpa-')}"
        for name in (VPA_RECOMMENDER, VPA_UPDATER, VPA_ADMISSION_CONTROLLER)
    },
    versioned="k8s.io/autoscaler/vertical-pod-autoscaler",
)
STATE_METRICS: Final = Module(
    directory=GO_MODULES / "kube-state-metrics",
    packages={KUBE_STATE_METRICS: "k8s.io/kube-state-metrics/v2"},
    versioned="k8s.io/kube-state-metrics/v2",
    stamps=_PROMETHEUS_STAMPS,
    unlisted=("k8s.io/kube-state-metrics/v2", "k8s.io/sample-controller"),
)
RBAC_PROXY: Final = Module(
    directory=GO_MODULES / "kube-rbac-proxy",
    packages={KUBE_RBAC_PROXY: "github.com/brancz/kube-rbac-proxy/cmd/kube-rbac-proxy"},
    versioned="github.com/brancz/kube-rbac-proxy",
    stamps=kubernetes_stamps("k8s.io/component-base/version"),
)
MONITORING_OPERATOR: Final = Module(
    directory=GO_MODULES / "prometheus-operator",
    packages={
        PROMETHEUS_OPERATOR: f"{_OPERATOR}/cmd/operator",
        PROMETHEUS_CONFIG_RELOADER: f"{_OPERATOR}/cmd/prometheus-config-reloader",
    },
    versioned=_OPERATOR,
    stamps=_PROMETHEUS_STAMPS,
    # A folder of the kinds' definitions, for tests: `binaries.find((PROMETHEUS_CRDS,))`.
    folders={PROMETHEUS_CRDS: Folder(_OPERATOR, "example/prometheus-operator-crd")},
)
MONITORING: Final = Module(
    directory=GO_MODULES / "prometheus",
    # promtool checks rules and evaluates them in tests; no image has it.
    packages={
        name: f"github.com/prometheus/prometheus/cmd/{name}" for name in (PROMETHEUS, PROMTOOL)
    },
    versioned="github.com/prometheus/prometheus",
    stamps=_PROMETHEUS_STAMPS,
    # Without the clients of all clouds, which are most of its sources.
    tags=("remove_all_sd", "enable_kubernetes_sd", "enable_dns_sd"),
)
ALERTING: Final = Module(
    directory=GO_MODULES / "alertmanager",
    packages={ALERTMANAGER: "github.com/prometheus/alertmanager/cmd/alertmanager"},
    versioned="github.com/prometheus/alertmanager",
    stamps=_PROMETHEUS_STAMPS,
)
PROBING: Final = Module(
    directory=GO_MODULES / "blackbox-exporter",
    packages={BLACKBOX_EXPORTER: "github.com/prometheus/blackbox_exporter"},
    versioned="github.com/prometheus/blackbox_exporter",
    stamps=_PROMETHEUS_STAMPS,
)
# For tests of shards; no image has it. Its start is our own, because it has no option for a port.
CONTROLLER_SHARDING: Final = Module(
    directory=GO_MODULES / "controller-sharding",
    packages={SHARDER: "./sharder"},
    versioned=_SHARDING,
    folders={SHARDING_CRDS: Folder(_SHARDING, "config/crds")},
    unlisted=(_SHARDING,),
)
ON_DEMAND: Final = (
    DRUID,
    BACKUP_RESTORE,
    GARDENER,
    SEED_AGENT,
    LOCAL_PROVIDER,
    AWS_PROVIDER,
    MACHINES,
    CLOUD_CONTROLLERS,
    VOLUMES,
    SELF_HOSTED,
    PREVIOUS_SEED_AGENT,
    ORIGINAL_RESOURCE_MANAGER,
    TERMINALS,
    CHARTS,
    COMMAND_LINE,
    OCI_REGISTRY,
    REGISTRY_CLIENT,
    VERTICAL_AUTOSCALING,
    STATE_METRICS,
    RBAC_PROXY,
    MONITORING_OPERATOR,
    MONITORING,
    ALERTING,
    PROBING,
    CONTROLLER_SHARDING,
)
