"""The lifetimes of cached answers of the API server about a person."""

from typing import NamedTuple


class Lifetimes(NamedTuple):
    """The lifetimes of answers in seconds.

    Attributes:
        token: A token was accepted.
        allowed: A kind may be listed.
        denied: A kind may not be listed; longer, because most answers are of this type.
        failed: The API server did not answer, which counts as a refusal.
    """

    token: float = 30.0
    allowed: float = 30.0
    denied: float = 120.0
    failed: float = 5.0
