"""How long answers of the API server about a person are believed."""

from typing import NamedTuple


class Lifetimes(NamedTuple):
    """Seconds for which an answer counts.

    Attributes:
        token: A token was accepted.
        allowed: A kind may be listed.
        denied: A kind may not be listed; longer, since most answers are this one.
        failed: There was no answer, which counts as a refusal.
    """

    token: float = 30.0
    allowed: float = 30.0
    denied: float = 120.0
    failed: float = 5.0
