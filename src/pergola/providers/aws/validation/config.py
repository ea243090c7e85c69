"""All findings about one config (spec 30 §1.4)."""

from collections.abc import Iterator

from pergola.api.field_errors import Cause, required
from pergola.providers.aws.config import InfrastructureConfig
from pergola.providers.aws.validation.facts import ShootFacts
from pergola.providers.aws.validation.identifiers import FILE_SYSTEM, check_id
from pergola.providers.aws.validation.networks import check_networks
from pergola.providers.aws.validation.ranges import check_ranges
from pergola.providers.aws.validation.tags import check_tags
from pergola.providers.aws.validation.zones import check_zones


def check_config(
    config: InfrastructureConfig, facts: ShootFacts, old: InfrastructureConfig | None = None
) -> Iterator[Cause]:
    """Yield all findings about a config; paths are relative to it.

    Args:
        old: the previous config; its zones are not looked up in the CloudProfile again, since AWS
            and operators retire zones under running clusters.
    """
    yield from check_networks(config, facts)
    yield from check_zones(config, facts, old)
    yield from check_ranges(config, facts)
    yield from _file_system(config)
    if config.ignore_tags is not None:
        yield from check_tags(config.ignore_tags)


def _file_system(config: InfrastructureConfig) -> Iterator[Cause]:
    file_system = config.elastic_file_system
    if file_system is None:
        return
    path = "elasticFileSystem.id"
    if file_system.id:
        yield from check_id(path, file_system.id, FILE_SYSTEM)
    elif file_system.enabled and any(
        zone.workers_subnet_id is not None for zone in config.networks.zones
    ):
        yield required(
            path,
            "no file system is created in subnets that exist already: create one in the VPC, with "
            "a mount target in each zone, and name it here",
        )
