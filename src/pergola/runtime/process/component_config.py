"""Read the configuration file of a component, and derive the options of its process.

The types that the files of all components share are in `pergola.api.component_config`.
"""

from pathlib import Path

from pergola.api import component_config
from pergola.api.component_config import Debugging, LeaderElection, Sharding
from pergola.api.objects import JsonValue
from pergola.kube.yaml import YamlError, parse
from pergola.runtime.process.options import (
    Address,
    Election,
    LeaseTimes,
    ProcessOptions,
    ShardLease,
    StartError,
)


def read_file(path: Path) -> JsonValue:
    """Return the content of a configuration file.

    Raises:
        StartError: It cannot be read, or is not valid YAML.
    """
    try:
        return parse(path.read_bytes())
    except OSError as error:
        raise StartError(f"cannot read configuration file {path}: {error.strerror}") from None
    except YamlError as error:
        raise StartError(f"configuration file {path} is not valid YAML: {error}") from None


def options_of(
    health: component_config.Address,
    metrics: component_config.Address,
    debugging: Debugging,
    election: LeaderElection,
    sharding: Sharding | None = None,
) -> ProcessOptions:
    """Return the options of a process with these settings."""
    return ProcessOptions(
        health=Address(health.bind_address, health.port, "server.healthProbes.port"),
        metrics=Address(metrics.bind_address, metrics.port, "server.metrics.port"),
        profiling=debugging.enable_profiling,
        election=_election(election) if election.leader_elect else None,
        sharding=_sharding(sharding, election) if sharding and sharding.controller_ring else None,
    )


def _election(settings: LeaderElection) -> Election:
    return Election(
        namespace=settings.resource_namespace, name=settings.resource_name, times=_times(settings)
    )


def _sharding(settings: Sharding, election: LeaderElection) -> ShardLease:
    return ShardLease(
        ring=settings.controller_ring,
        namespace=election.resource_namespace,
        times=_times(election),
    )


def _times(settings: LeaderElection) -> LeaseTimes:
    return LeaseTimes(
        lease_duration=settings.lease_duration.total_seconds(),
        renew_deadline=settings.renew_deadline.total_seconds(),
        retry_period=settings.retry_period.total_seconds(),
    )
