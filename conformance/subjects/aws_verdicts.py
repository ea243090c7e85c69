"""The base of subjects about the extension for AWS."""

from collections.abc import Iterable, Iterator

import msgspec

from conformance.comparison import Difference, refusals
from conformance.oracles import AWS, Answer, OracleModule
from pergola.api.field_errors import Cause
from pergola.api.objects import JsonValue


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


def _relative(field: str, under: str) -> str:
    return field.removeprefix(under).removeprefix(".") if under else field
