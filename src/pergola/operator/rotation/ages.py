"""The age of each credential that is renewed only at a user's request (spec 20 'Beyond' 29)."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pergola.garden.components.authorities import ON_DEMAND
from pergola.garden.components.service_account_key import NAME as ACCOUNT_KEY
from pergola.garden.components.workload_identity import KEY as WORKLOAD_KEY
from pergola.kube.selectors import format_selector
from pergola.operator.run.build import IDENTITY as OPERATOR
from pergola.secrets_manager.managed import IDENTITY as MANAGER_IDENTITY
from pergola.secrets_manager.managed import ISSUED_AT, MANAGED_BY, MANAGER, NAME, moment

_LABELS: Final = {MANAGED_BY: MANAGER, MANAGER_IDENTITY: OPERATOR}
MANAGED: Final = format_selector({"matchLabels": _LABELS})
"""Selects the Secrets with credentials."""
CREDENTIALS: Final = (
    *ON_DEMAND,
    ACCOUNT_KEY,
    "kube-apiserver-etcd-encryption-key",
    "gardener-apiserver-etcd-encryption-key",
    "observability-ingress",
    WORKLOAD_KEY,
)
"""The credentials that are not renewed without a request."""
OLDEST: Final = timedelta(days=90)
"""The age at which a credential should be rotated."""


class Age(NamedTuple):
    """The age of a credential."""

    credential: str
    age: timedelta


def is_managed(labels: Mapping[str, str]) -> bool:
    """Return whether a Secret with these labels contains a credential of the operator."""
    return _LABELS.items() <= labels.items()


def ages(secrets: Iterable[Mapping[str, str]], now: datetime) -> list[Age]:
    """Return the age of each existing credential, in the order of `CREDENTIALS`.

    Args:
        secrets: The labels of Secrets of the operator's secrets manager; for each credential, the
            newest Secret counts.
    """
    issued: dict[str, datetime] = {}
    for labels in secrets:
        name, time = labels.get(NAME, ""), moment(labels.get(ISSUED_AT))
        if name in CREDENTIALS and time is not None:
            issued[name] = max(issued.get(name, time), time)
    return [Age(name, now - issued[name]) for name in CREDENTIALS if name in issued]
