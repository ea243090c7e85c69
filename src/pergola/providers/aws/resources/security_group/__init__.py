"""The security group of the nodes (spec 30 §6).

rules     rules as values: read from AWS, compared, written as AWS takes them
desired   which rules the managed group has, from the ranges of the zones
ensure    the step that creates the group and keeps its rules
deletion  the step that deletes it
"""

from pergola.providers.aws.resources.security_group.deletion import DELETE, delete_steps
from pergola.providers.aws.resources.security_group.ensure import NODES_GROUP, steps

__all__ = ["DELETE", "NODES_GROUP", "delete_steps", "steps"]
