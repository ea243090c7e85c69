"""What a condition says."""

from typing import Final, Literal, NamedTuple

CHECK_FAILED: Final = "CheckFailed"


class ConditionUpdate(NamedTuple):
    """What a condition says."""

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
