"""Offline validation of an `InfrastructureConfig`: all findings at once (spec 30 §1.4).

config       `check_config`: all that is wrong with one config
update       `check_update`: all that is wrong with a change of it
written      `check_written`: both, of JSON
facts        what a Shoot and its CloudProfile decide
zones        zones, and the subnets in them
networks     the VPC, security groups, gateway endpoints
ranges       CIDRs against each other
pools         the worker pools of a Shoot
pool_hints    those that Gardener admits, but whose machines AWS refuses to start
annotation_hints  annotations with which a driver does not start
worker_config their `WorkerConfig`
tags         tags of others that are to stay
identifiers  how AWS names things
"""

from pergola.providers.aws.validation.config import check_config
from pergola.providers.aws.validation.facts import ShootFacts, facts_of, zones_of
from pergola.providers.aws.validation.update import check_update
from pergola.providers.aws.validation.written import check_written

__all__ = [
    "ShootFacts",
    "check_config",
    "check_update",
    "check_written",
    "facts_of",
    "zones_of",
]
