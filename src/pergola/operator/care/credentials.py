"""Credentials that only a user or a schedule renews, and that are too old; pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from pergola.health import CareFailure
from pergola.operator.care.components import bounded
from pergola.operator.rotation.ages import OLDEST, Age, ages

OLD: Final = "CredentialsOld"


def check_credentials(secrets: Iterable[Mapping[str, str]], now: datetime) -> CareFailure | None:
    """Return which credentials should be rotated, or None.

    The message contains dates rather than ages, so that it stays the same from run to run.

    Args:
        secrets: The labels of the Secrets of the operator's secrets manager.
    """
    old = [_problem(each, now) for each in ages(secrets, now) if each.age > OLDEST]
    return CareFailure(OLD, bounded(sorted(old))) if old else None


def _problem(found: Age, now: datetime) -> str:
    since = (now - found.age).date().isoformat()
    return f"credential {found.credential} has not been rotated since {since}: rotate it"
