"""Questions about permissions: few, cached, and denied without an answer."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import CONFIG_MAP, EVENT, SECRET
from pergola.api.objects import GroupVersionKind
from pergola.dashboard.access import permissions
from pergola.dashboard.access.lifetimes import Lifetimes
from pergola.dashboard.access.permissions import NOTHING, Permissions
from pergola.dashboard.access.reviews import User, user_of
from pergola.dashboard.state.scope import Place
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from tests.support.service_accounts import request_token, service_account_config

FOREVER: Final = Lifetimes(token=1e9, allowed=1e9, denied=1e9, failed=1e9)
ADMINISTRATOR: Final = User("anyone", {"groups": ["system:masters"]})
NOBODY: Final = User("nobody", {"groups": []})
PLACES: Final = frozenset(Place(CONFIG_MAP, f"place-{number}") for number in range(20))


class Counted:
    """A client of an administrator that counts its answered requests."""

    def __init__(self, path: Path) -> None:
        self.requests: Counter[str] = Counter()
        self.client = Client.connect(load(path), observe=self._observe)

    def _observe(self, method: str, code: str, _host: str, _seconds: float) -> None:
        if code.startswith("2"):  # a busy server may ask for another attempt
            self.requests[method] += 1


@pytest.fixture
async def counted(kubeconfig: Path) -> AsyncIterator[Counted]:
    found = Counted(kubeconfig)
    async with found.client:
        yield found


async def test_permission_to_list_a_kind_everywhere_takes_one_request(counted: Counted) -> None:
    asked = Permissions(counted.client, ADMINISTRATOR, FOREVER)
    assert await asked.allowed(PLACES) == PLACES
    assert counted.requests["POST"] == 1


async def test_answers_are_cached_including_refusals(counted: Counted) -> None:
    asked = Permissions(counted.client, NOBODY, FOREVER)
    assert await asked.allowed(PLACES) == set()
    assert counted.requests["POST"] == 1 + len(PLACES)
    assert await asked.allowed(PLACES) == set()
    assert counted.requests["POST"] == 1 + len(PLACES)


async def test_only_a_person_who_may_list_nothing_is_notified(
    counted: Counted,
) -> None:
    nobody = Permissions(counted.client, NOBODY, FOREVER)
    assert nobody.problems() == []  # no request was sent yet
    await nobody.allowed(PLACES)
    assert nobody.problems() == [{"kind": "Permissions", "problem": NOTHING}]

    everybody = Permissions(counted.client, ADMINISTRATOR, FOREVER)
    await everybody.allowed(PLACES)
    assert everybody.problems() == []


async def test_an_expired_answer_is_requested_again(counted: Counted) -> None:
    asked = Permissions(counted.client, ADMINISTRATOR, Lifetimes(0, 0, 0, 0))
    place = Place(SECRET, "")
    for count in (1, 2):
        assert await asked.allowed({place}) == {place}
        assert counted.requests["POST"] == count


async def test_places_beyond_the_limit_are_denied_and_reported(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(permissions, "MOST_DECISIONS", 5)
    asked = Permissions(counted.client, NOBODY, FOREVER)
    assert await asked.allowed(PLACES) == set()
    assert counted.requests["POST"] == 5
    [problem] = asked.problems()
    assert problem["problem"].startswith(f"{len(PLACES) - 4} kinds in namespaces are not shown")


async def test_a_kind_that_is_not_served_is_denied(counted: Counted) -> None:
    asked = Permissions(counted.client, ADMINISTRATOR, FOREVER)
    assert await asked.allowed({Place(GroupVersionKind("none", "v1", "None"), "a")}) == set()


async def test_without_an_answer_everything_is_denied_and_the_page_gives_the_reason(
    kubeconfig: Path, namespace: str
) -> None:
    config = await service_account_config(load(kubeconfig), namespace)
    async with Client.connect(config) as powerless:
        asked = Permissions(powerless, ADMINISTRATOR, FOREVER)
        assert await asked.allowed({*PLACES, Place(EVENT, namespace)}) == set()
    [problem] = asked.problems()
    assert problem["problem"].startswith("the API server cannot be asked what you may see: ")


async def test_a_token_belongs_to_a_user_with_groups(
    counted: Counted, namespace: str, kubeconfig: Path
) -> None:
    token = await request_token(load(kubeconfig), namespace, "default")
    user = await user_of(counted.client, token)
    assert user is not None
    assert user.name == f"system:serviceaccount:{namespace}:default"
    assert f"system:serviceaccounts:{namespace}" in user.identity["groups"]
    assert token not in repr(user)
    assert await user_of(counted.client, f"{token}x") is None
