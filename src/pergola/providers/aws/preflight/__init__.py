"""Preflight: checks of a config against its AWS account, before anything changes (spec 30 §5).

check           `findings`: all of them; `demand`: raises if one of them blocks
finding         one finding: where, what, and the AWS CLI command that fixes it
vpc             L1 to L4: DNS, IPv6, gateways, DHCP options
ranges          L5: ranges of managed subnets
subnets         L6 to L9: user-provided subnets
others          L10, L12, L13: security groups, elastic IPs, the file system
ambiguity       subnets for load balancers that compete with each other
hints           what may be wrong, but does not block: routes, endpoints, free addresses, tags
nodes           whether routes and addresses suffice for all nodes of the pools
security_group  `check_rules`: the same for rules, on request

Two things are deliberately left to the user: wrong routes show as nodes that do not join, and rules
of security groups have their own condition.
"""

from pergola.providers.aws.preflight.check import demand, findings
from pergola.providers.aws.preflight.finding import Finding
from pergola.providers.aws.preflight.security_group import check_rules

__all__ = ["Finding", "check_rules", "demand", "findings"]
