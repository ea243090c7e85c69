"""Conditions of an Infrastructure about user-provided resources (spec 30 §6.4, Beyond 10, 11).

security_group         whether the nodes' security group has the rules that nodes need
load_balancer_subnets  whether load balancers find subnets
checks                 the health checks, which read little of AWS and rarely

They report problems before nodes fail to join or Services remain without an address, and never
block a reconciliation. Pure functions determine the content of a condition.
"""

from pergola.providers.aws.health.checks import health_checks

__all__ = ["health_checks"]
