"""Whether a new token is due (spec 11 §1.4 step 2), as far as that can be decided locally.

The original asks the API server about each token at each look (rule 2.5, a TokenReview). Here a
token that was issued or reviewed by this process is not asked about again for a while, because the
things that end a token are seen otherwise:

| what happened                         | how it is seen                                       |
| ------------------------------------- | ---------------------------------------------------- |
| it expired                            | its `exp` claim                                      |
| its ServiceAccount was deleted or     | its uid claim and the uid of the ServiceAccount,     |
| recreated, or it is of another one    | which is watched, and read before anything is denied |
| somebody exchanged or tampered with it| its digest is not the known one: a review            |
| it was there before this process      | nothing is known of it: a review                     |
| it is opaque, or names no uid         | a review                                             |
| the signing keys were rotated         | a review at the first look after an hour; whoever    |
|                                       | rotates removes the renew timestamps, which counts   |
|                                       | at once (§1.7)                                       |
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
"""Less than this part of its lifetime is left of a token that somebody has to look after."""
_RENEWAL_SHARE: Final = 0.8
_RENEWAL_SPREAD: Final = 0.05
_LONGEST_LIFE: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Due:
    """A new token is due.

    Attributes:
        why: for the log.
        in_doubt: whether that may be an error about a good token: clocks that differ, or audiences
            that the server does not know. Then the token that we issued a moment ago gets a chance.
    """

    why: str
    in_doubt: bool = False


REQUESTED: Final = Due("the renew timestamp is absent")
NO_TARGET: Final = Due("the target Secret does not exist")
NO_TOKEN: Final = Due("there is no token")
TO_MOVE: Final = Due("the token or kubeconfig has to move to the target Secret")
OTHER_CA: Final = Due("the stored CA is not the one of the target cluster")
EXPIRED: Final = Due("the token has expired", in_doubt=True)
OTHER_ACCOUNT: Final = Due("the token is not of the present ServiceAccount")
REJECTED: Final = Due("the API server does not accept the token", in_doubt=True)
OVERDUE: Final = Due("the renew timestamp has passed", in_doubt=True)


def due_by_content(
    seen: SeenSecret, request: Request, holder: Holding | None, ca: bytes | None
) -> Due | None:
    """The rules that need neither a clock nor an API server; None if none of them applies.

    Args:
        holder: what the Secret holds that must hold the token; None if that does not exist.
        ca: digest of the target cluster's CA; None if it has none.
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
    """The time at which the Secret wants a new token.

    Raises:
        MistakesError: the annotation is no time.
    """
    text = seen.annotations.get(names.RENEW, "")
    renewal = read_time(text)
    if renewal is None:
        problem = f"could not parse renew timestamp: {text!r} is no RFC 3339 time; remove it"
        raise MistakesError([Mistake(annotation(names.RENEW), problem)])
    return renewal


def renews_in(life: timedelta, random: float) -> float:
    """Seconds until a token is renewed that lives on for `life`.

    80 % of that, but of a day at most; and up to 5 % later, so that tokens that were issued
    together are not all renewed together.

    Args:
        random: evenly spread from 0 to 1.
    """
    return (
        _RENEWAL_SHARE * min(life, _LONGEST_LIFE).total_seconds() * (1 + _RENEWAL_SPREAD * random)
    )
