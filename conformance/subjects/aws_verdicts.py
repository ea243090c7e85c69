"""The base of subjects about the extension for AWS."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from conformance.comparison import Difference, refusals
from conformance.oracles import AWS, Answer, OracleModule
from pergola.admission.review import GroupVersionResource, Request, Verdict
from pergola.admission.webhook import Webhook
from pergola.api.field_errors import Cause
from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue, name_of, namespace_of

_PLURALS: Final = {"WorkloadIdentity": "workloadidentities"}


class OfAws:
    """The base of subjects about the extension for AWS; each is asked by its own name."""

    name: str
    of: OracleModule = AWS

    @property
    def ask(self) -> str:
        """The name."""
        return self.name

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the refused fields without their texts, or the whole answer."""
        output = answer.output
        if "refused" in output:
            refused: JsonValue = {str(each["field"]): True for each in output["refused"] or ()}
            return {**output, "refused": refused}
        return output


def compared(
    answer: Answer, ours: Iterable[Cause], *, under: str = "", note: str = ""
) -> Iterator[Difference]:
    """Compare the verdict of a validation.

    A crash or an error of the original's webhook refuses the request, too.

    Args:
        under: the path of the config in our findings, which the original's do not have.
        note: a suffix for the path of a difference.
    """
    theirs = [
        (str(each["field"]).replace("<nil>", ""), f"{each['type']}: {each['detail']}")
        for each in answer.output.get("refused", ())
    ]
    if answer.outcome != "output":
        theirs = [(answer.outcome, str(answer.value).split("\n", 1)[0])]
    found = refusals(
        theirs,
        [(_relative(cause.field, under), f"{cause.reason}: {cause.message}") for cause in ours],
    )
    for each in found:
        yield msgspec.structs.replace(each, path=each.path + note)


def reviewed(webhook: Webhook, question: JsonObject, *, peer: str = "") -> Verdict:
    """Return the verdict of a webhook about the `object` of a question, and its `old` state.

    Args:
        peer: the address that asks.
    """
    obj, old = question["object"], question.get("old")
    gvk = GroupVersionKind.of(obj)
    plural = _PLURALS.get(gvk.kind, f"{gvk.kind.lower()}s")
    request = Request(
        uid="1",
        operation="CREATE" if old is None else "UPDATE",
        kind=gvk,
        resource=GroupVersionResource(gvk.group, gvk.version, plural),
        namespace=namespace_of(obj),
        name=name_of(obj),
        object=obj,
        old_object=old,
        peer=peer,
    )
    return asyncio.run(_awaited(webhook, request))


async def _awaited(webhook: Webhook, request: Request) -> Verdict:
    verdict = webhook.handler(request)
    return verdict if isinstance(verdict, Verdict) else await verdict


def _relative(field: str, under: str) -> str:
    return field.removeprefix(under).removeprefix(".") if under else field
