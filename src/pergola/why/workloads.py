"""Why an object is unhealthy, down to the container, its last log line and the last Event."""

from collections.abc import Iterator
from typing import Final

from pergola.api.kinds import POD
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.kinds import GROUP
from pergola.garden.components.component import Identity
from pergola.health import has_rule
from pergola.kube.errors import Forbidden
from pergola.operator.reconcile.explain import Finding
from pergola.operator.reconcile.explain import explain as find
from pergola.operator.reconcile.explain.pods import CLAIM
from pergola.why.answer import Asked, Evidence, Kind, Part, Statement, Topic
from pergola.why.explainer import Explainer
from pergola.why.reading import Reader


def of_finding(finding: Finding, topic: Topic = Topic.PROBLEM) -> Statement:
    """Return a finding about an object as a statement, with its causes."""
    return Statement(
        topic=topic,
        subject=finding.subject,
        text=" ".join(finding.problem.split()),
        since=finding.since,
        evidence=tuple(_evidence(finding)),
        below=tuple(of_finding(cause) for cause in finding.causes),
        advice=finding.advice,
    )


def _evidence(finding: Finding) -> Iterator[Evidence]:
    if finding.event:
        yield Evidence(Kind.EVENT, finding.event)
    if finding.log:
        yield Evidence(Kind.LOG, finding.log)


async def unhealthy(identity: Identity, reader: Reader) -> Statement | None:
    """Return why an object is unhealthy; None if it is healthy, or may not be read."""
    try:
        finding = await find(reader.client, identity)
    except Forbidden as error:
        reader.note(f"{identity.gvk.kind} {identity.key} cannot be judged: {error}")
        return None
    return of_finding(finding) if finding else None


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return why an object is unhealthy, if it is."""
    found = await unhealthy(Identity(asked.gvk, asked.key), reader)
    if found is None:
        return Part(sentence="is healthy")
    return Part(sentence="is not healthy", statements=(found,))


def _applies(obj: JsonObject) -> bool:
    gvk = GroupVersionKind.of(obj)
    if gvk.group == GROUP or gvk.group_kind == MANAGED_RESOURCE.group_kind:
        return False
    return has_rule(gvk) or gvk in (POD, CLAIM)


WORKLOADS: Final = Explainer("health", _applies, explain)
