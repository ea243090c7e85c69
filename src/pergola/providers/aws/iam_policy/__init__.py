"""The minimal permissions of an identity in AWS: the extension's, and those of controllers.

features      modes and features
extension     the operations of the extension's steps
controllers   the permissions of controllers with the same credentials
policy        the policy of a mode
"""

from pergola.providers.aws.iam_policy.extension import actions
from pergola.providers.aws.iam_policy.features import Feature, Mode
from pergola.providers.aws.iam_policy.policy import iam_policy

__all__ = ["Feature", "Mode", "actions", "iam_policy"]
