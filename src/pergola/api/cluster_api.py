"""Cluster API's vocabulary: kinds, annotations, labels, and names of CRDs (spec 50).

The values are part of the API, and unbroken here so that a search finds them.
"""

from typing import Final, Literal

from pergola.api.objects import GroupKind, GroupVersionKind

CLUSTER_GROUP: Final = "cluster.x-k8s.io"
INFRASTRUCTURE_GROUP: Final = "infrastructure.cluster.x-k8s.io"
CLUSTER: Final = GroupVersionKind(CLUSTER_GROUP, "v1beta2", "Cluster")
MACHINE: Final = GroupVersionKind(CLUSTER_GROUP, "v1beta2", "Machine")

MANAGED_BY: Final = "cluster.x-k8s.io/managed-by"
"""Annotation of an InfraCluster; present, with any value: another system manages it."""
PAUSED: Final = "cluster.x-k8s.io/paused"
"""Annotation; present, with any value: reconciliation of the object is paused."""
CLUSTER_NAME: Final = "cluster.x-k8s.io/cluster-name"
"""Label: the Cluster that an object belongs to."""
WATCH_FILTER: Final = "cluster.x-k8s.io/watch-filter"
"""Label: the responsible instance of a provider."""

SOURCE: Final = "infrastructure.pergola.dev/source"
"""Annotation: the source of the network, such as `configmap/<name>`, `secret/<name>` or `aws`."""
RELEASE_FINALIZERS: Final = "infrastructure.pergola.dev/release-finalizers"
"""Annotation: `true` removes finalizers that a former provider left behind."""
READY_BY_HAND: Final = "cluster.x-k8s.io/externally-managed-ready"
"""Annotation: `true` marks the infrastructure as ready if no controller does."""

AWS_VPC: Final = "infrastructure.pergola.dev/aws-vpc"
"""Annotation: the VPC of an AWSCluster, by its id."""
AWS_VPC_TAGS: Final = "infrastructure.pergola.dev/aws-vpc-tags"
"""Annotation: the VPC of an AWSCluster, by tags, `key=value,key=value`; exactly one must match."""
AWS_SUBNET_TAGS: Final = "infrastructure.pergola.dev/aws-subnet-tags"
"""Annotation: only subnets with all of these tags belong to the AWSCluster."""
AWS_ZONES: Final = "infrastructure.pergola.dev/aws-zones"
"""Annotation: the zones that the AWSCluster uses, `eu-west-1a,eu-west-1b`; by default all."""
AWS_SECURITY_GROUPS: Final = "infrastructure.pergola.dev/aws-security-groups"
"""Annotation: security groups by role, `node=sg-…,controlplane=sg-…`; by default, by tags."""
AWS_LOAD_BALANCER: Final = "infrastructure.pergola.dev/aws-load-balancer"
"""Annotation: the load balancer of the API server, by name or ARN; else the spec's endpoint."""
AWS_ACCOUNT: Final = "infrastructure.pergola.dev/aws-account"
"""Annotation: the account that must contain all resources."""
AWS_CONTROL_PLANE_TAG: Final = "infrastructure.pergola.dev/control-plane"
"""Tag of an AWS subnet: `false` keeps control planes out of its zone."""
AWS_PROVIDER_TAG: Final = "sigs.k8s.io/cluster-api-provider-aws"
"""Prefix of the AWS provider's tags: `…/role` of a security group, `…/cluster/<name>`."""

ContractVersion = Literal["v1beta1", "v1beta2"]
CONTRACT_VERSIONS: Final[tuple[ContractVersion, ...]] = ("v1beta2", "v1beta1")
"""The contracts that core understands, the preferred one first."""


def contract_label(version: str) -> str:
    """Return the label of a CRD that lists its API versions for a contract version."""
    return f"{CLUSTER_GROUP}/{version}"


def crd_name(kind: GroupKind) -> str:
    """Return the name of a kind's CRD as core computes it, without a lookup (spec 50 §4.1)."""
    return f"{plural_of(kind.kind)}.{kind.group}"


def plural_of(kind: str) -> str:
    """Form the plural by Kubernetes' rule: `FooCluster` → `fooclusters`, `Policy` → `policies`."""
    lowered = kind.lower()
    if lowered.endswith("s"):
        return f"{lowered}es"
    if lowered.endswith("y"):
        return f"{lowered[:-1]}ies"
    return f"{lowered}s"


def provider_finalizer(kind: GroupKind) -> str:
    """Return the finalizer that providers conventionally add to InfraClusters of a kind."""
    return f"{kind.kind.lower()}.{kind.group}"
