"""Nobody can end the sessions of others by opening many."""

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from pergola.dashboard.access.sessions import MOST, MOST_PER_OWNER, Sessions

COOKIE = "session"


def opened(sessions: Sessions[str], owner: str) -> web.Request:
    """Open a session; return a request with its cookie."""
    response = web.Response()
    sessions.open(response, owner, owner=owner)
    return make_mocked_request("GET", "/", {"Cookie": f"{COOKIE}={response.cookies[COOKIE].value}"})


def new_sessions() -> Sessions[str]:
    return Sessions(COOKIE, seconds=3600.0, is_secure=True)


async def test_too_many_sessions_end_the_oldest_one_of_the_same_user() -> None:
    sessions = new_sessions()
    admin = opened(sessions, "admin")
    mine = [opened(sessions, "ann") for _ in range(MOST_PER_OWNER + 1)]
    assert sessions.get(mine[0]) is None
    assert {sessions.get(request) for request in mine[1:]} == {"ann"}
    assert sessions.get(admin) == "admin"


async def test_too_many_users_end_the_oldest_session_of_the_user_with_most() -> None:
    sessions = new_sessions()
    first = [opened(sessions, "ann") for _ in range(2)]
    others = [opened(sessions, f"user-{number}") for number in range(MOST - 2)]
    opened(sessions, "new")
    assert [sessions.get(request) for request in first] == [None, "ann"]
    assert all(sessions.get(request) for request in others)
