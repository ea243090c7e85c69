"""Record sets of DNSRecords in Route 53."""

from collections.abc import Iterable, Iterator

from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences
from conformance.oracles import Answer
from conformance.strategies.aws_dns import HOSTS, questions
from conformance.subjects.aws_verdicts import OfAws
from pergola.api import marks
from pergola.api.objects import JsonObject
from pergola.providers.aws.dns import desired_record_sets, possible_record_sets
from pergola.providers.aws.resources.record_sets import (
    Alias,
    RecordSet,
    is_ours,
    plan_record_sets,
    record_set,
)


class AwsDnsRecords(OfAws):
    """The record sets that are created, and those that are left after a deletion."""

    name = "aws-dns-records"
    title = "AWS: DNSRecords, alias targets and takeover"
    code = (
        "pergola.providers.aws.dns",
        "pergola.providers.aws.resources.alias_targets",
        "pergola.providers.aws.resources.record_sets",
    )

    def table(self) -> Iterator[JsonObject]:
        """Yield each host."""
        for host in HOSTS:
            yield {
                "name": "api.example.org",
                "recordType": "CNAME",
                "values": [host],
                "ttl": None,
                "stack": "dual-stack",
                "live": [],
            }

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return DNSRecords of each type, and records as the original left them."""
        return questions()

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the records in any order; without a state, Pergola takes over what there is."""
        obj = _dns_record(question)
        written = plan_record_sets([], desired_record_sets(obj), [])
        possible = possible_record_sets(obj)
        left = [each for each in question["live"] if not is_ours(_live(question, each), possible)]
        ours: JsonObject = {
            "created": _by_type(_created(each["ResourceRecordSet"]) for each in written),
            "left": _by_type(left),
        }
        theirs: JsonObject = {part: _by_type(answer.output[part]) for part in ("created", "left")}
        return differences(theirs, ours)


def _dns_record(question: JsonObject) -> JsonObject:
    return {
        "metadata": {
            "name": "api",
            "namespace": "garden",
            "annotations": {marks.IP_STACK: question["stack"]},
        },
        "spec": {key: question[key] for key in ("name", "recordType", "values", "ttl")},
    }


def _live(question: JsonObject, record: JsonObject) -> RecordSet:
    alias, name, of_type = record["alias"], question["name"], record["type"]
    if alias:
        found = record_set(name, of_type, alias=Alias(alias["zone"], alias["name"]))
        return found._replace(evaluates_health=alias["healthy"])
    return record_set(name, of_type, record["ttl"], record["values"])


def _created(written: JsonObject) -> JsonObject:
    target = written.get("AliasTarget")
    alias = target and {
        "zone": target["HostedZoneId"],
        "name": target["DNSName"].rstrip("."),
        "healthy": target["EvaluateTargetHealth"],
    }
    values = [each["Value"] for each in written.get("ResourceRecords", ())]
    return {
        "type": written["Type"],
        "ttl": written.get("TTL", 0),
        "values": values,
        "alias": alias,
    }


def _by_type(records: Iterable[JsonObject]) -> JsonObject:
    return {each["type"]: {**each, "values": sorted(each["values"])} for each in records}
