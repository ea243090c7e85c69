"""Record sets of one name in a hosted zone of Route 53."""

import re
from collections.abc import Collection, Iterable, Sequence
from ipaddress import IPv6Address
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import NotFound
from pergola.extension_api.errors import configuration_problem

CNAME: Final = "CNAME"
ADDRESSES: Final = ("A", "AAAA")
_SERVICE: Final = "route53"
_DELETE: Final = "DELETE"
_UPSERT: Final = "UPSERT"
_ESCAPE: Final = re.compile(r"\\([0-7]{3})")
_LONGEST_STRING: Final = 255
_PAGE: Final = "100"


class Alias(NamedTuple):
    """The target of an alias record, such as a load balancer, and its hosted zone."""

    zone: str
    name: str


class RecordSet(NamedTuple):
    """All records of a name and a type, normalized for comparison.

    Attributes:
        name: lower-case, without a dot at the end.
        ttl: in seconds; 0 for an alias.
        values: as stored by Route 53, sorted; empty for an alias.
        evaluates_health: whether an alias is answered only while its target is healthy. A deletion
            must repeat it as it is.
        routing: distinguishes several record sets with the same name and type; empty for simple
            ones, the only ones that are ever written.
    """

    name: str
    type: str
    ttl: int = 0
    values: tuple[str, ...] = ()
    alias: Alias | None = None
    routing: str = ""
    evaluates_health: bool = True

    def leads_like(self, other: "RecordSet") -> bool:
        """Return whether both lead to the same.

        Time to live and health checks are irrelevant, and a host determines its hosted zone.
        """
        alias = self.alias
        if alias and other.alias:
            alias = alias._replace(zone=other.alias.zone)
        same = self._replace(ttl=other.ttl, evaluates_health=other.evaluates_health, alias=alias)
        return same == other

    def __str__(self) -> str:
        to = self.alias.name if self.alias else ", ".join(self.values)
        return f"{self.type} record {self.name} to {to}"


class Placed(NamedTuple):
    """A record set in a hosted zone."""

    zone: str
    records: RecordSet


def record_set(
    name: str,
    of_type: str,
    ttl: int = 0,
    values: Iterable[str] = (),
    *,
    alias: Alias | None = None,
) -> RecordSet:
    """Return a record set with its name and values as stored by Route 53."""
    stored = tuple(sorted({_value(of_type, value) for value in values}))
    return RecordSet(normal_name(name), of_type, ttl, stored, alias)


def normal_name(name: str) -> str:
    """Return a DNS name in lower case, without escapes and without a dot at its end."""
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 8)), name)
    return plain.rstrip(".").lower()


async def observe_record_sets(aws: AwsClient, zone: str, name: str) -> list[RecordSet]:
    """Return all record sets of a name in a hosted zone.

    Raises:
        CloudError: AWS refused.
    """
    found: list[RecordSet] = []
    start: JsonObject = {"StartRecordName": name}
    while start:
        answer = await aws.call(
            _SERVICE, "ListResourceRecordSets", HostedZoneId=zone, MaxItems=_PAGE, **start
        )
        # Names are sorted; subsequent names are returned as well.
        found += map(_observed, maps_at(answer, "ResourceRecordSets"))
        follows = answer.get("NextRecordName")
        if not answer.get("IsTruncated") or normal_name(str(follows)) != name:
            break
        start = {
            parameter: answer[field]
            for parameter, field in (
                ("StartRecordName", "NextRecordName"),
                ("StartRecordType", "NextRecordType"),
                ("StartRecordIdentifier", "NextRecordIdentifier"),
            )
            if answer.get(field)
        }
    return [each for each in found if each.name == name]


def plan_record_sets(
    live: Sequence[RecordSet], desired: Sequence[RecordSet], ours: Collection[RecordSet]
) -> list[JsonObject]:
    """Return the changes that lead to the desired record sets of one name; empty if there are none.

    They are carried out together: a type is replaced by another one without a gap.

    Args:
        ours: previously created ones; others are never deleted.

    Raises:
        ExtensionError: a record that is not ours conflicts with a desired one.
    """
    types = {each.type for each in desired}
    obsolete = [each for each in live if each.type not in types and is_ours(each, ours)]
    _check_conflicts([each for each in live if each not in obsolete], desired)
    return [
        *(_change(_DELETE, each) for each in obsolete),
        *(_change(_UPSERT, each) for each in desired if each not in live),
    ]


async def apply_changes(aws: AwsClient, zone: str, changes: Sequence[JsonObject]) -> None:
    """Carry out changes, all or none.

    Raises:
        CloudError: AWS refused.
    """
    if changes:
        await aws.call(
            _SERVICE,
            "ChangeResourceRecordSets",
            HostedZoneId=zone,
            ChangeBatch={"Changes": list(changes)},
        )


async def delete_record_sets(
    aws: AwsClient, zone: str, name: str, ours: Collection[RecordSet]
) -> list[RecordSet]:
    """Delete the record sets of a name that are still as we created them.

    Returns:
        Those that other clients changed or created instead of ours, which are kept.

    Raises:
        CloudError: AWS refused.
    """
    try:
        live = await observe_record_sets(aws, zone, name)
        to_delete = [each for each in live if is_ours(each, ours)]
        await apply_changes(aws, zone, [_change(_DELETE, each) for each in to_delete])
    except NotFound:  # the zone was deleted, with everything in it
        return []
    types = _claimed(ours)
    return [each for each in live if each.type in types and each not in to_delete]


def _claimed(ours: Collection[RecordSet]) -> set[str]:
    """Return the types that a name has only if other clients replaced ours.

    A CNAME record excludes addresses, and aliases stand for one.
    """
    types = {each.type for each in ours}
    if any(each.alias or each.type == CNAME for each in ours):
        return {*types, CNAME, *ADDRESSES}
    return {*types, CNAME} if types & {*ADDRESSES} else types


def is_ours(live: RecordSet, ours: Collection[RecordSet]) -> bool:
    """Return whether a record set gives the same answers as a previously created one."""
    return any(live.leads_like(each) for each in ours)


def _check_conflicts(others: Sequence[RecordSet], desired: Sequence[RecordSet]) -> None:
    for each in others:
        for record in desired:
            excludes = CNAME in (each.type, record.type) and each.type != record.type
            if excludes or (each.routing and each.type == record.type):
                raise configuration_problem(
                    f"the {record} cannot be created, because the name has {_title(each)} that was "
                    "not created for this DNSRecord: delete it, or choose another name"
                )


def _title(records: RecordSet) -> str:
    article = "an" if records.type[0] in "AMNS" else "a"
    kind = f"{records.type} record"
    return f'{article} {kind} "{records.routing}"' if records.routing else f"{article} {kind}"


def _change(action: str, records: RecordSet) -> JsonObject:
    written: JsonObject = {"Name": f"{records.name}.", "Type": records.type}
    if records.alias is not None:
        written["AliasTarget"] = {
            "HostedZoneId": records.alias.zone,
            "DNSName": f"{records.alias.name}.",
            "EvaluateTargetHealth": records.evaluates_health,
        }
    else:
        written["TTL"] = records.ttl
        written["ResourceRecords"] = [{"Value": value} for value in records.values]
    return {"Action": action, "ResourceRecordSet": written}


def _observed(answer: JsonObject) -> RecordSet:
    target = map_at(answer, "AliasTarget")
    alias = (
        Alias(str(target.get("HostedZoneId")), normal_name(str(target.get("DNSName"))))
        if target
        else None
    )
    values = [str(each.get("Value")) for each in maps_at(answer, "ResourceRecords")]
    found = record_set(
        str(answer.get("Name")), str(answer.get("Type")), int(answer.get("TTL") or 0), values
    )
    return found._replace(
        alias=alias,
        routing=str(answer.get("SetIdentifier") or ""),
        evaluates_health=not target or target.get("EvaluateTargetHealth") is True,
    )


def _value(of_type: str, value: str) -> str:
    """Return a value as stored by Route 53."""
    if of_type == "TXT":
        return _quoted(value)
    if of_type == CNAME:
        return normal_name(value)
    if of_type == "AAAA":
        try:
            return str(IPv6Address(value))
        except ValueError:
            return value  # Route 53 reports what is wrong with it
    return value


def _quoted(text: str) -> str:
    """Return a text as quoted strings, each of at most 255 characters."""
    if len(text) > 1 and text.startswith('"') and text.endswith('"'):
        return text
    pieces = [text[at : at + _LONGEST_STRING] for at in range(0, len(text), _LONGEST_STRING)]
    escaped = (piece.replace("\\", r"\\").replace('"', r"\"") for piece in pieces)
    return " ".join(f'"{piece}"' for piece in escaped)
