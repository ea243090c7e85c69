"""The subjects of the comparison, one module each."""

from typing import Final

from conformance.subjects.aws_control_planes import AwsControlPlaneObjects
from conformance.subjects.aws_dns import AwsDnsRecords
from conformance.subjects.aws_garden import AwsGardenObjects, AwsImageFlavors
from conformance.subjects.aws_infrastructure import AwsInfrastructure
from conformance.subjects.aws_machines import AwsMachines
from conformance.subjects.aws_parts import AwsBackupBucket, AwsCredentials, AwsImage
from conformance.subjects.aws_pools import AwsControlPlane, AwsWorker
from conformance.subjects.aws_shoots import AwsShoot, AwsShootDefaults
from conformance.subjects.aws_webhooks import AwsControlPlaneWebhooks
from conformance.subjects.calico import CalicoConfig, CalicoObjects
from conformance.subjects.configurations import (
    OPERATOR_CONFIG_SUBJECT,
    RESOURCE_MANAGER_CONFIG_SUBJECT,
)
from conformance.subjects.csr import SigningRequests
from conformance.subjects.extension_objects import EXTENSIONS_SUBJECT
from conformance.subjects.garbage import Garbage
from conformance.subjects.garden_flows import GardenFlows
from conformance.subjects.garden_objects import GardenObjects
from conformance.subjects.gitops import ArgoCDHealth, FluxHealth
from conformance.subjects.health import Health
from conformance.subjects.maintenance import Evictions, Schedules
from conformance.subjects.managed_objects import ManagedObjects
from conformance.subjects.managed_resource_secrets import ManagedResourceSecrets
from conformance.subjects.managed_resources import ManagedResources
from conformance.subjects.network_policies import NetworkPolicies
from conformance.subjects.node_agents import NodeAgents
from conformance.subjects.nodes import CriticalComponents, NodeDelays
from conformance.subjects.operator_admission import EXTENSION_SUBJECT, GARDEN_SUBJECT
from conformance.subjects.pods import PODS_SUBJECT
from conformance.subjects.protected import PROTECTED_SUBJECT
from conformance.subjects.rotations import Rotations
from conformance.subjects.secrets_manager import Secrets
from conformance.subjects.subject import Subject
from conformance.subjects.token_requests import TokenRequests
from conformance.subjects.unique_names import UniqueNames
from conformance.subjects.vpas import VPAS_SUBJECT
from conformance.subjects.workloads import WORKLOADS_SUBJECT

SUBJECTS: Final[tuple[Subject, ...]] = (
    Health(),
    AwsInfrastructure(),
    AwsControlPlane(),
    AwsControlPlaneObjects(),
    AwsControlPlaneWebhooks(),
    AwsWorker(),
    AwsImage(),
    AwsMachines(),
    AwsBackupBucket(),
    AwsCredentials(),
    AwsDnsRecords(),
    AwsShoot(),
    AwsShootDefaults(),
    AwsGardenObjects(),
    AwsImageFlavors(),
    CalicoObjects(),
    CalicoConfig(),
    PODS_SUBJECT,
    WORKLOADS_SUBJECT,
    VPAS_SUBJECT,
    PROTECTED_SUBJECT,
    EXTENSIONS_SUBJECT,
    NodeAgents(),
    SigningRequests(),
    NetworkPolicies(),
    GARDEN_SUBJECT,
    EXTENSION_SUBJECT,
    GardenObjects(),
    GardenFlows(),
    RESOURCE_MANAGER_CONFIG_SUBJECT,
    OPERATOR_CONFIG_SUBJECT,
    Rotations(),
    Schedules(),
    Evictions(),
    ManagedObjects(),
    ManagedResourceSecrets(),
    TokenRequests(),
    Garbage(),
    UniqueNames(),
    Secrets(),
    CriticalComponents(),
    NodeDelays(),
    ManagedResources(),
    FluxHealth(),
    ArgoCDHealth(),
)
"""All subjects."""
