"""The content of a condition."""

from typing import Final, Literal, NamedTuple

CHECK_FAILED: Final = "CheckFailed"


class ConditionUpdate(NamedTuple):
    """Status, reason and message of a condition."""

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
