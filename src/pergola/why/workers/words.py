"""Messages of a cloud about machines, with their class and the remedy; pure."""

from collections import defaultdict
from collections.abc import Iterator

from pergola.api.kinds import MACHINE
from pergola.api.objects import JsonObject, Key, map_at, maps_at, namespace_of
from pergola.health.times import read_time
from pergola.providers.aws.codes import codes_of_text
from pergola.why.answer import Statement, Topic
from pergola.why.code_advice import advice_for

NO_REASON = "no reason given"


def said(
    text: str, *, subject: str = "", topic: Topic = Topic.PROBLEM, since: object = None
) -> Statement:
    """Return a statement with words of the cloud.

    Args:
        since: the time in the status of the object.
    """
    codes = codes_of_text(text)
    classes = f" ({', '.join(codes)})" if codes else ""
    return Statement(
        topic=topic,
        subject=subject,
        text=f"{' '.join(text.split())}{classes}",
        since=read_time(since),
        advice=advice_for(codes),
    )


def failures(deployment: JsonObject) -> Iterator[Statement]:
    """Yield why machines of a MachineDeployment failed: one statement for each reason."""
    by_reason: dict[str, list[JsonObject]] = defaultdict(list)
    for machine in maps_at(deployment, "status", "failedMachines"):
        reason = str(map_at(machine, "lastOperation").get("description") or NO_REASON)
        by_reason[reason].append(machine)
    for reason, machines in by_reason.items():
        names = [Key(namespace_of(deployment), str(each.get("name"))) for each in machines]
        last = map_at(machines[0], "lastOperation").get("lastUpdateTime")
        yield said(reason, subject=f"{MACHINE.kind} {', '.join(map(str, names))}", since=last)
