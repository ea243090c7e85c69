"""Check for zones with several candidate subnets for load balancers (spec 30 §8.4).

Nothing is guessed, and nothing is created or tagged before the ambiguity is resolved.
"""

from collections.abc import Iterator

from pergola.api.field_errors import forbidden
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.preflight.finding import Finding, ec2, zone_path
from pergola.providers.aws.preflight.hints import ROLES, balancer_subnets
from pergola.providers.aws.preflight.subnets import named
from pergola.providers.aws.snapshot import Snapshot


def check(desired: Desired, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a finding for each zone and role with several subnets, named or tagged."""
    if snapshot.vpc is None or not desired.config.byo_subnets:
        return
    for field in ROLES:
        explicit = {each.id for each in named(desired) if each.field == field}
        zones = balancer_subnets(desired, snapshot, field)
        for index, (zone, several) in enumerate(zones.items()):
            if len(several) > 1:
                surplus = sorted(several - explicit or several)
                yield _finding(desired, zone_path(index, field), zone, field, several, surplus)


def _finding(
    desired: Desired, path: str, zone: str, field: str, several: set[str], surplus: list[str]
) -> Finding:
    kept = 0 if len(surplus) < len(several) else 1
    text = (
        f"zone {zone} has several subnets for {ROLES[field]} load balancers: "
        f"{', '.join(sorted(several))}; remove the tag of all but one"
    )
    resources = " ".join(surplus[kept:])
    command = f"delete-tags --resources {resources} --tags Key={desired.cluster_tag}"
    return Finding(forbidden(path, text), ec2(desired, command))
