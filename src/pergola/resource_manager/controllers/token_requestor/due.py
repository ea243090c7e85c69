"""Rules that decide locally whether a new token is due (spec 11 §1.4 step 2).

The original sends a TokenReview for each token in every run (rule 2.5). Here, a token that this
process issued or reviewed is not reviewed again for a while, because the events that end a token
are detected in other ways:

| event                                 | how it shows                                         |
| ------------------------------------- | ---------------------------------------------------- |
| it expired                            | its `exp` claim                                      |
| its ServiceAccount was deleted or     | its uid claim and the uid of the ServiceAccount,     |
| recreated, or it is of another one    | which is watched, and read before the answer is no   |
| it was replaced or changed            | its digest differs: a review                         |
| it is older than this process         | it is unknown: a review                              |
| it is opaque, or names no uid         | a review                                             |
| the signing keys were rotated         | a review after an hour; a rotation also removes the  |
|                                       | renew timestamps, which takes effect at once (§1.7)  |
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pergola.health.times import read_time
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.inputs import (
    Mistake,
    MistakesError,
    Request,
    annotation,
)
from pergola.resource_manager.controllers.token_requestor.observe import Holding, SeenSecret

WARN_SHARE: Final = 0.1
"""A token whose remaining share of its lifetime is below this needs attention."""
_RENEWAL_SHARE: Final = 0.8
_RENEWAL_SPREAD: Final = 0.05
_LONGEST_LIFE: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Due:
    """A new token is due.

    Attributes:
        why: For the log.
        in_doubt: Whether the token may still be good, because clocks differ or the server does not
            know its audiences. A token that was just issued is then kept for a while.
    """

    why: str
    in_doubt: bool = False


REQUESTED: Final = Due("the renew timestamp is absent")
NO_TARGET: Final = Due("the target Secret does not exist")
NO_TOKEN: Final = Due("the token is missing")
TO_MOVE: Final = Due("the token or kubeconfig has to move to the target Secret")
OTHER_CA: Final = Due("the stored CA is not the one of the target cluster")
EXPIRED: Final = Due("the token has expired", in_doubt=True)
OTHER_ACCOUNT: Final = Due("the token belongs to another ServiceAccount")
REJECTED: Final = Due("the API server does not accept the token", in_doubt=True)
OVERDUE: Final = Due("the renew timestamp has passed", in_doubt=True)


def due_by_content(
    seen: SeenSecret, request: Request, holder: Holding | None, ca: bytes | None
) -> Due | None:
    """Evaluate the rules that need neither a clock nor an API server; None if none applies.

    Args:
        holder: The credentials in the Secret that must contain the token; None if it does not
            exist.
        ca: Digest of the target cluster's CA, or None.
    """
    if not seen.annotations.get(names.RENEW):
        return REQUESTED
    if holder is None:
        return NO_TARGET
    if holder.token is None:
        return NO_TOKEN
    if request.target is not None and seen.holding.keys:
        return TO_MOVE
    if request.injects_ca and holder.ca != ca:
        return OTHER_CA
    return None


def renewal_time(seen: SeenSecret) -> datetime:
    """Return the time when the Secret is due for a new token.

    Raises:
        MistakesError: The annotation is not a time.
    """
    text = seen.annotations.get(names.RENEW, "")
    renewal = read_time(text)
    if renewal is None:
        problem = f"could not parse renew timestamp: {text!r} is not an RFC 3339 time; remove it"
        raise MistakesError([Mistake(annotation(names.RENEW), problem)])
    return renewal


def renews_in(life: timedelta, random: float) -> float:
    """Return the seconds until the renewal of a token with the remaining lifetime `life`.

    That is 80 % of it, or of a day if it is longer, plus up to 5 %, so that tokens issued together
    are not renewed together.

    Args:
        random: A number from a uniform distribution between 0 and 1.
    """
    return (
        _RENEWAL_SHARE * min(life, _LONGEST_LIFE).total_seconds() * (1 + _RENEWAL_SPREAD * random)
    )
