"""Networks as AWS describes them: what an external manager fills into AWSClusters (spec 50 §8).

`wanted` (which network) → `observe` (ask AWS) → `read` (facts) → `completeness` (what is missing) →
`decide` (what the AWSCluster should be); `source` puts them together. `checks` is for people,
`policy` for who grants the permissions.

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
