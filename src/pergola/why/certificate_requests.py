"""Why a CertificateSigningRequest is approved, denied or pending, by the approver's rules."""

from typing import Final

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.health.times import read_time
from pergola.kube.errors import Forbidden
from pergola.resource_manager.controllers.csr_approver.judge import Judge, Judged
from pergola.resource_manager.controllers.csr_approver.rules import Approved
from pergola.why.answer import Asked, Part, Statement, Topic
from pergola.why.reading import Reader

_DECISIONS: Final = ("Approved", "Denied")


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return the decision about a request, or the decision that the approver would make now."""
    user = str(map_at(asked.obj, "spec").get("username") or "")
    signer = str(map_at(asked.obj, "spec").get("signerName") or "")
    requester = Statement(topic=Topic.WANTED, subject=f"user {user}", text=f"for signer {signer}")
    for condition in maps_at(asked.obj, "status", "conditions"):
        if condition.get("type") in _DECISIONS:
            return _decided(asked.obj, condition, requester)
    try:
        # as if no Node had a Machine
        judged = await Judge(reader.client, reader.client, None).judge(asked.obj)
    except Forbidden as error:
        reader.note(f"the request cannot be judged: {error}")
        return Part(sentence="is undecided", statements=(requester,))
    return Part(sentence="is undecided", statements=(requester, _undecided(judged)))


def _decided(csr: JsonObject, condition: JsonObject, desired: Statement) -> Part:
    kind = str(condition["type"])
    statements = [
        desired,
        Statement(
            topic=Topic.DECIDED,
            text=f"{kind.lower()}: {condition.get('message') or condition.get('reason') or ''}",
            since=read_time(condition.get("lastTransitionTime")),
        ),
    ]
    if kind == "Approved" and not map_at(csr, "status").get("certificate"):
        statements.append(Statement(topic=Topic.WAITS, text="the signer, to issue the certificate"))
    return Part(sentence=f"is {kind.lower()}", statements=tuple(statements))


def _undecided(judged: Judged | None) -> Statement:
    if judged is None:
        return Statement(
            topic=Topic.WAITS,
            text="an approver: the csr-approver ignores it",
            because="it is for neither a kubelet, a gardener-node-agent nor gardenadm",
            advice="approve or deny it with kubectl certificate, if you trust its user",
        )
    if isinstance(judged.verdict, Approved):
        return Statement(
            topic=Topic.WAITS,
            text="the csr-approver, which would approve it: all checks pass",
            advice="check that a resource manager with the csr-approver runs",
        )
    fate = "denied unless that changes" if judged.verdict.may_pass else "denied"
    return Statement(
        topic=Topic.WAITS,
        text=f"the csr-approver: it would be {fate}",
        because=judged.verdict.reason,
        advice="create a new request that satisfies the rule",
    )
