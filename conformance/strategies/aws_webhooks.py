"""Objects that the webhooks of AWS change, with the Shoots that they belong to."""

import base64
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.aws import config
from conformance.strategies.aws_control_planes import BASE, KEYS, NAMESPACE, ROLE
from conformance.strategies.fields import ABSENT, BOOLEANS, Change, changed, changes, or_absent
from pergola.api.objects import JsonObject, map_at
from pergola.kube.yaml import dump

_AWS: Final = "aws.provider.extensions.gardener.cloud"
_SPEC: Final = "cluster.spec.shoot.spec"
_POD: Final = "object.spec.template.spec"
_CONTAINER: Final = f"{_POD}.containers.0"
_VERSION: Final = f"{_SPEC}.kubernetes.version"
_CHOSEN: Final = Change(
    "cluster.spec.shoot.metadata.annotations",
    {f"{_AWS}/enable-volume-attributes-class": "true"},
)
_OLD_KUBERNETES: Final = Change(_VERSION, "1.33.5")
_DELETED: Final = Change("object.metadata.deletionTimestamp", "2026-01-01T00:00:00Z")
_FLAGS: Final = (
    "--cloud-provider=aws",
    "--cloud-provider=external",
    "--cloud-config=/etc/x.conf",
    "--external-cloud-volume-plugin=aws",
    "--allocate-node-cidrs",
    "--allocate-node-cidrs=true",
    "--allocate-node-cidrs=false",
    "--feature-gates=A=true,B=false",
    "--feature-gates=VolumeAttributesClass=true",
    "--feature-gates=VolumeAttributesClass=false",
    "--runtime-config=apps/v1=false",
    "--v=2",
)
_LEFTOVERS: Final = (
    Change(f"{_CONTAINER}.command", ["/bin/it", *_FLAGS]),
    Change(
        f"{_CONTAINER}.env",
        [
            {"name": name, "value": "x"}
            for name in ("AWS_ACCESS_KEY_ID", "OTHER", "AWS_SECRET_ACCESS_KEY")
        ],
    ),
    Change(
        f"{_CONTAINER}.volumeMounts",
        [
            {"name": name, "mountPath": f"/{name}"}
            for name in ("etc-ssl", "usr-share-cacerts", "other")
        ],
    ),
    Change(
        f"{_POD}.volumes",
        [{"name": name, "emptyDir": {}} for name in ("etc-ssl", "usr-share-cacerts", "other")],
    ),
    Change(
        "object.spec.template.metadata",
        {
            "labels": {
                "role": "it",
                **{
                    f"networking.gardener.cloud/to-{to}": "allowed"
                    for to in ("blocked-cidrs", "private-networks", "public-networks")
                },
            },
            "annotations": {
                "checksum/secret-cloudprovider": "1",
                "checksum/configmap-cloud-provider-config": "2",
                "checksum/other": "3",
            },
        },
    ),
)
DEPLOYMENTS: Final = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "cluster-autoscaler",
    "machine-controller-manager",
    "other",
)
ETCDS: Final = ("etcd-main", "etcd-events", "virtual-garden-etcd-main", "other")
_DRIVER: Final = "machine-controller-manager-provider-aws"
_UNIT: Final = (
    "[Unit]\nDescription=kubelet daemon\nDocumentation=https://kubernetes.io/docs/admin/kubelet\n"
    "[Install]\nWantedBy=multi-user.target\n[Service]\nRestart=always\n"
    "EnvironmentFile=-/var/lib/kubelet/extra_args\nExecStart=/opt/bin/kubelet \\\n"
    "    --config=/var/lib/kubelet/config/kubelet \\\n    --v=2 $KUBELET_EXTRA_ARGS"
)
_SET_HOST: Final = "ExecStartPre=/bin/sh -c 'hostnamectl set-hostname $(hostname -f)'"
_UNITS: Final = (
    _UNIT,
    _UNIT.replace("\n[", "\n\n[") + "\n",
    f"[Service]\nExecStart=/opt/bin/kubelet \\\n    --cloud-provider=aws\n{_SET_HOST}\n",
    "[Service]\nRestart=always",
    "[Service]\nExecStart=/opt/bin/kubelet --v=2\n\n# a comment \\\n  of two lines\n[Unit]\nA=b\n",
    "; comment\n[Service]\nRestart=always\n[Unit]\nA=b\n[Service]\nB = c=d \n",
    "[Service]\nno option\n",
    "[Service\nA=b",
    "[Service] text\nA=b",
    "",
)
_KERNEL: Final = "fs.inotify.max_user_watches = 1\nnet.ipv4.ip_forward = 1"
_KERNELS: Final = (
    _KERNEL,
    f"{_KERNEL}\nnet.ipv4.neigh.default.gc_thresh1 = 80\nother = 1\n",
    "net.ipv4.neigh.default.gc_thresh1=0",
    "net.ipv4.neigh.default.gc_thresh1 =\n 7",
    "net.ipv4.neigh.default.gc_thresh1 = ",
    "",
)
_HAND_WRITTEN: Final = dump(
    {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}},
        "cgroupDriver": "systemd",
        "maxPods": 110,
        "serverTLSBootstrap": True,
    }
)
_WRITTEN: Final = """\
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  anonymous:
    enabled: false
  webhook:
    cacheTTL: 2m0s
    enabled: true
  x509:
    clientCAFile: /var/lib/kubelet/ca.crt
authorization:
  mode: Webhook
  webhook:
    cacheAuthorizedTTL: 5m0s
    cacheUnauthorizedTTL: 30s
cgroupDriver: systemd
clusterDNS:
- 100.64.0.10
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cpuManagerReconcilePeriod: 10s
crashLoopBackOff: {}
evictionHard:
  imagefs.available: 5%
  memory.available: 100Mi
evictionPressureTransitionPeriod: 4m0s
featureGates:
  A: true
fileCheckFrequency: 20s
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 2m0s
kind: KubeletConfiguration
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
    text:
      infoBufferSize: "0"
  verbosity: 0
maxPods: 110
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
registerWithTaints:
- effect: NoSchedule
  key: node.gardener.cloud/critical-components-not-ready
runtimeRequestTimeout: 2m0s
serverTLSBootstrap: true
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
streamingConnectionIdleTimeout: 5m0s
syncFrequency: 1m0s
volumeStatsAggPeriod: 1m0s
"""
_CONFIGS: Final = (
    _WRITTEN,
    _WRITTEN.replace("cpuManager", "enableControllerAttachDetach: false\ncpuManager"),
    _HAND_WRITTEN,
    _HAND_WRITTEN.replace("systemd", "other").replace(
        "maxPods: 110", "evictionSoft: {}\nmaxPods: 1"
    ),
    "kind: Other",
    "a: [",
    "",
)


def _object(
    kind: str, api: str, name: str, namespace: str = NAMESPACE, **fields: Any
) -> JsonObject:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def deployment(name: str) -> JsonObject:
    """Return a Deployment as gardenlet writes it."""
    container = {"name": name, "image": f"example.com/{name}:v1", "command": ["/bin/it", "--v=2"]}
    labels = {"role": name}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    return _object("Deployment", "apps/v1", name, spec=spec)


def inline(text: str, encoding: str = "b64") -> JsonObject:
    """Return the content of a file."""
    data = base64.b64encode(text.encode()).decode() if encoding == "b64" else text
    return {"inline": {"encoding": encoding, "data": data}}


def _files(kubelet: JsonObject, kernel: JsonObject) -> list[JsonObject]:
    return [
        {"path": "/var/lib/kubelet/config/kubelet", "permissions": 420, "content": kubelet},
        {"path": "/etc/sysctl.d/99-k8s-general.conf", "permissions": 420, "content": kernel},
    ]


def _unit(content: str) -> JsonObject:
    return {"name": "kubelet.service", "command": "start", "enable": True, "content": content}


_NODES: Final = _object(
    "OperatingSystemConfig",
    "extensions.gardener.cloud/v1alpha1",
    "gardener-node-agent-a-original",
    spec={
        "type": "gardenlinux",
        "purpose": "reconcile",
        "units": [_unit(_UNIT)],
        "files": _files(inline(_WRITTEN), inline(_KERNEL, "")),
    },
)
_VPA: Final = _object(
    "VerticalPodAutoscaler",
    "autoscaling.k8s.io/v1",
    "machine-controller-manager-vpa",
    spec={"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}},
)
_SERVICE: Final = _object("Service", "v1", "web", "default", spec={"type": "LoadBalancer"})
_CONFIG_MAP: Final = _object("ConfigMap", "v1", "nginx", "kube-system", data={"a": "b"})
_VOLUMES: Final = _object(
    "PersistentVolumeClaimAutoscaler",
    "autoscaling.gardener.cloud/v1alpha1",
    "it",
    spec={
        "targetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x"},
        "volumePolicies": [
            {"maxCapacity": "10Gi", "scaleUp": {}},
            {"maxCapacity": "10Gi", "scaleUp": {"cooldownDuration": "1h0m0s"}},
            {"maxCapacity": "10Gi", "scaleUp": {"cooldownDuration": "7h0m0s"}},
            {"maxCapacity": "10Gi"},
        ],
    },
)


def _etcd(name: str) -> JsonObject:
    spec: JsonObject = {
        "selector": {"matchLabels": {"a": "b"}},
        "labels": {"a": "b"},
        "replicas": 1,
        "etcd": {},
        "backup": {},
        "sharedConfig": {},
    }
    return _object("Etcd", "druid.gardener.cloud/v1alpha1", name, spec=spec)


def _role(text: str) -> JsonObject:
    labels = {"workloadidentity.security.gardener.cloud/provider": "aws"}
    data = {"config": base64.b64encode(text.encode()).decode(), "token": "dA=="}
    return {**ROLE, "metadata": {**ROLE["metadata"], "labels": labels}, "data": data}


_IDENTITY: Final = dump(
    config("WorkloadIdentityConfig", {"roleARN": "arn:aws:iam::123456789012:role/own"})
)
_IDENTITIES: Final = (_IDENTITY, "kind: Other", _IDENTITY + "more: 1\n", "", "[")


def _case(webhook: str, obj: JsonObject, *made: Change, **more: Any) -> JsonObject:
    question = {"webhook": webhook, "object": obj, "cluster": BASE["cluster"], "secret": KEYS}
    return changed({**question, **more}, made)


def case_of(name: str, *made: Change) -> JsonObject:
    """Return the question about the Deployment of a component."""
    return _case("controlplane", deployment(name), *made)


def nodes(*made: Change) -> JsonObject:
    """Return the question about an OperatingSystemConfig."""
    return _case("controlplane", _NODES, *made)


def service(families: Sequence[str] = ("IPv6",), *made: Change, **more: Any) -> JsonObject:
    """Return the question about a Service in a Shoot."""
    return _case("shoot-service", _SERVICE, *made, families=list(families), **more)


def secret(obj: JsonObject, *made: Change) -> JsonObject:
    """Return the question about a Secret with credentials."""
    return _case("cloudprovider", obj, *made)


def table() -> Iterator[JsonObject]:
    """Yield a question for each sort of object, and each option that matters to it."""
    yield from _of_deployments()
    yield from _of_nodes()
    yield from _of_machines()
    yield from _of_etcds()
    yield from _of_services()
    for identity in _IDENTITIES:
        yield secret(_role(identity))
    for key in ("accessKeyID", "secretAccessKey"):
        yield secret(KEYS, Change(f"object.data.{key}", ABSENT))
    yield secret(KEYS)
    yield secret(KEYS, Change("object.data.credentialsFile", "b2xk"))
    yield secret(KEYS, Change("object.metadata.name", "other"))
    yield secret(KEYS, _DELETED)
    yield _case("seed-pvca", _VOLUMES)
    for made in ([], [Change("object.data", ABSENT)], [_DELETED]):
        yield _case("shoot-configmap", _CONFIG_MAP, *made)


def _of_deployments() -> Iterator[JsonObject]:
    for name in DEPLOYMENTS:
        yield case_of(name)
        yield case_of(name, *_LEFTOVERS)
        yield case_of(name, _DELETED)
        yield case_of(name, Change(f"{_CONTAINER}.name", "another"))
        yield case_of(name, _CHOSEN)
        yield case_of(name, _CHOSEN, _OLD_KUBERNETES)
        yield case_of(name, _CHOSEN, _OLD_KUBERNETES, *_LEFTOVERS)
    manager = "kube-controller-manager"
    both: list[list[Any]] = [["IPv6"], ["IPv4", "IPv6"]]
    for families in both:
        yield case_of(manager, Change(f"{_SPEC}.networking.ipFamilies", families))
    yield case_of(
        manager, Change("cluster.spec.shoot.status.networking", {"nodes": ["2001:db8::/56"]})
    )
    yield case_of(manager, Change(f"{_SPEC}.networking", ABSENT))


def _of_machines() -> Iterator[JsonObject]:
    name = "machine-controller-manager"
    before: list[Any] = [{"name": _DRIVER, "args": ["--v=1"]}, {"name": name}, {"name": "other"}]
    role = Change("secret", ROLE)
    yield case_of(name, role)
    yield case_of(name, Change("secret", None))
    yield case_of(name, role, Change(f"{_POD}.containers", before))
    yield case_of(name, role, Change(f"{_POD}.volumes", [{"name": "workload-identity"}]))
    yield case_of(name, Change(f"{_SPEC}.provider.workers", [{"name": "a", "controlPlane": {}}]))
    yield _case("controlplane", _VPA)
    policies: list[Any] = [
        {"containerName": "*", "mode": "Auto"},
        {"containerName": _DRIVER, "minAllowed": {"memory": "1Gi"}},
    ]
    yield _case(
        "controlplane",
        _VPA,
        Change("object.spec.resourcePolicy", {"containerPolicies": policies}),
    )


def _of_nodes() -> Iterator[JsonObject]:
    infrastructure = f"{_SPEC}.provider.infrastructureConfig"
    yield nodes()
    for version in ("1.32.9", "1.33.5", "1.35.1", "1.36.0"):
        yield nodes(Change(_VERSION, version))
    for option in ("enableMTUCustomizer", "enableECRAccess"):
        yield nodes(Change(f"{infrastructure}.{option}", value=False))
    yield nodes(Change(infrastructure, ABSENT))
    yield nodes(Change("object.spec.purpose", "provision"))
    yield nodes(Change("object.spec.units", []), Change("object.spec.files", ABSENT))
    mtu: JsonObject = {"name": "custom-mtu.service", "content": "own"}
    yield nodes(Change("object.spec.units", [mtu]))
    done: list[Any] = [
        {"path": path, "permissions": 420, "content": inline("old", "")}
        for path in (
            "/opt/bin/mtu-customizer.sh",
            "/opt/gardener/ecr-credential-provider-config.json",
        )
    ]
    yield nodes(Change("object.spec.files", done))
    for unit in _UNITS:
        yield nodes(Change("object.spec.units.0.content", unit))
    for encoding in ("", "b64"):
        for text in _CONFIGS:
            yield nodes(Change("object.spec.files.0.content", inline(text, encoding)))
        for text in _KERNELS:
            yield nodes(Change("object.spec.files.1.content", inline(text, encoding)))


def _of_etcds() -> Iterator[JsonObject]:
    storage = {"className": "gardener.cloud-fast", "capacity": "25Gi"}
    for name in ETCDS:
        for etcd in ({}, storage, {"className": "fast"}):
            yield _case("seedprovider", _etcd(name), etcd=etcd)
            yield _case("seedprovider", _etcd(name), etcd=etcd, old=_etcd(name))
            given = changed(_etcd(name), [Change("spec.storageCapacity", "80Gi")])
            yield _case("seedprovider", given, etcd=etcd)
            yield _case("seedprovider", _etcd(name), etcd=etcd, old=given)


def _of_services() -> Iterator[JsonObject]:
    lb = "service.beta.kubernetes.io/aws-load-balancer"
    ignore = "extensions.gardener.cloud/ignore-load-balancer"
    at = "object.metadata.annotations"
    for families in (["IPv4"], ["IPv6"], ["IPv4", "IPv6"]):
        yield service(families)
    yield service(["IPv6"], Change("object.spec.type", "ClusterIP"))
    old = changed(_SERVICE, [Change("metadata.annotations", {ignore: "true"})])
    status = Change("object.status", {"loadBalancer": {"ingress": [{"hostname": "old.elb"}]}})
    options: list[JsonObject] = [
        {},
        {f"{lb}-scheme": "internal"},
        {f"{lb}-internal": "true"},
        {f"{lb}-type": "nlb", "example.com/x": "y"},
        {f"{lb}-ip-address-type": "dualstack"},
        {ignore: "true"},
        {ignore: "false"},
    ]
    for annotations in options:
        made = [Change(at, annotations), status]
        yield service(["IPv6"], *made)
        yield service(["IPv6"], *made, old=_SERVICE)
        yield service(["IPv6"], *made, old=old)
    yield service(["IPv6"], _DELETED)


def _lists(names: Sequence[str]) -> SearchStrategy[Any]:
    return st.lists(st.sampled_from(names), min_size=1, max_size=4)


_RANDOM: Final[dict[str, SearchStrategy[Any]]] = {
    _VERSION: st.sampled_from(["1.32.9", "1.33.5", "1.34.0", "1.35.1", "1.36.0"]),
    f"{_SPEC}.networking.ipFamilies": st.sampled_from([["IPv4"], ["IPv6"], ["IPv4", "IPv6"]]),
    f"{_SPEC}.provider.infrastructureConfig.enableECRAccess": BOOLEANS,
    f"{_SPEC}.provider.infrastructureConfig.enableMTUCustomizer": BOOLEANS,
    f"{_SPEC}.region": st.sampled_from(["eu-central-1", "cn-north-1"]),
    "cluster.spec.shoot.status.networking": _lists(["10.0.0.0/8", "2001:db8::/56"]).map(
        lambda nodes: {"nodes": nodes}
    ),
    _CHOSEN.path: st.sampled_from(["true", "false", "1", "yes", ""]).map(
        lambda value: {f"{_AWS}/enable-volume-attributes-class": value}
    ),
    f"{_CONTAINER}.command": _lists(_FLAGS).map(lambda flags: ["/bin/it", *flags]),
    f"{_CONTAINER}.env": _lists(["AWS_ACCESS_KEY_ID", "OTHER", "AWS_SECRET_ACCESS_KEY"]).map(
        lambda names: [{"name": name, "value": "x"} for name in names]
    ),
    f"{_POD}.volumes": _lists(["etc-ssl", "usr-share-cacerts", "other", "workload-identity"]).map(
        lambda names: [{"name": name, "emptyDir": {}} for name in names]
    ),
    "secret": st.sampled_from([KEYS, ROLE]),
    "families": st.sampled_from([["IPv4"], ["IPv6"], ["IPv6", "IPv4"]]),
    "object.spec.units.0.content": st.lists(
        st.sampled_from(
            ["[Service]", "[Unit]", "", "# a", "A=b", "ExecStart=/k --x \\", "  --y", _SET_HOST]
        ),
        max_size=9,
        # Where a text ends without a line break, the original changes its own output again.
    ).map(lambda lines: "".join(f"{line}\n" for line in lines)),
    "object.spec.files.0.content": st.sampled_from(_CONFIGS).map(inline),
    "object.spec.files.1.content": st.sampled_from(_KERNELS).map(inline),
    "object.spec.volumePolicies.0.scaleUp": or_absent(
        *({"cooldownDuration": text} for text in ("6h0m0s", "5h59m0s", "1h0m0s", "48h0m0s")), {}
    ),
}


def some_object() -> SearchStrategy[JsonObject]:
    """Return questions about random objects."""
    return st.tuples(st.sampled_from([*table()]), changes(_RANDOM, most=5)).map(
        lambda drawn: changed(drawn[0], [each for each in drawn[1] if _fits(drawn[0], each)])
    )


def _fits(question: JsonObject, change: Change) -> bool:
    """Return whether a question has the sort of object that a change is about."""
    kind, path = question["object"]["kind"], change.path
    provider = map_at(question["cluster"], "spec", "shoot", "spec", "provider")
    if "infrastructureConfig" in path and not provider.get("infrastructureConfig"):
        return False
    return not path.startswith("object.") or path.startswith(_PLACES.get(kind, ("-",)))


_PLACES: Final[dict[str, tuple[str, ...]]] = {
    "Deployment": ("object.spec.template",),
    "OperatingSystemConfig": ("object.spec.units", "object.spec.files"),
    "PersistentVolumeClaimAutoscaler": ("object.spec.volumePolicies",),
}
