"""Networks in AWS, which an external manager fills into AWSClusters (spec 50 §8).

`desired` (which network) → `observe` (AWS's descriptions) → `read` (facts) → `completeness` (what
is missing) → `decide` (the desired AWSCluster); `source` combines them. `checks` has hints for
people, `policy` the permissions.

Nothing here creates, changes or deletes anything in a cloud.
"""

from pergola.externally_managed.aws.checks import open_rules, templates_without_groups
from pergola.externally_managed.aws.policy import iam_policy, machine_policy
from pergola.externally_managed.aws.source import (
    AWS,
    AWS_CLUSTER,
    AwsSettings,
    AwsSource,
    asks_aws,
)

__all__ = [
    "AWS",
    "AWS_CLUSTER",
    "AwsSettings",
    "AwsSource",
    "asks_aws",
    "iam_policy",
    "machine_policy",
    "open_rules",
    "templates_without_groups",
]
