"""Answers to a registry that requires authentication (RFC 7235, and Docker's token protocol)."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import aiohttp
import orjson
from yarl import URL

from pergola.charts.errors import RegistryRefused
from pergola.charts.pull_secret import Credentials

_WORD: Final = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"
_PART: Final = re.compile(
    rf"""[\s,]*(?:
        (?P<name>{_WORD})\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s,"]+))
        | (?P<scheme>{_WORD})(?=[\s,]|$)
    )""",
    re.VERBOSE,
)
_QUOTED_PAIR: Final = re.compile(r"\\(.)")
_TOKEN_BYTES: Final = 256 * 1024


class Challenge(NamedTuple):
    """The requirement of a registry: a scheme in lower case, and its parameters."""

    scheme: str
    parameters: Mapping[str, str]

    @classmethod
    def parse(cls, header: str) -> "Challenge":
        """Parse the value of a `WWW-Authenticate` header; of several challenges, prefer Bearer."""
        found: list[tuple[str, dict[str, str]]] = []
        for part in _PART.finditer(header):
            if part["scheme"]:
                found.append((part["scheme"].lower(), {}))
            elif found:
                quoted = part["quoted"]
                value = part["plain"] if quoted is None else _QUOTED_PAIR.sub(r"\1", quoted)
                found[-1][1].setdefault(part["name"].lower(), value)
        preferred = [each for each in found if each[0] == "bearer"] or found or [("", {})]
        return cls(*preferred[0])


async def authorization(
    session: aiohttp.ClientSession,
    challenge: Challenge,
    credentials: Credentials | None,
    source: str,
    *,
    is_plain: bool,
) -> str:
    """Return the value of the `Authorization` header that answers a challenge.

    Args:
        source: The chart, for error messages.
        is_plain: Whether the registry, and therefore its token service, may be used without TLS.

    Raises:
        RegistryRefused: There are no credentials, or the token service refuses them.
    """
    if credentials is not None and credentials.token:
        return f"Bearer {credentials.token}"
    if challenge.scheme == "basic" and credentials is not None:
        return credentials.basic
    realm = challenge.parameters.get("realm", "")
    if challenge.scheme != "bearer" or not realm:
        raise refused(source, credentials)
    if not (realm.startswith("https://") or is_plain):
        raise RegistryRefused(
            f"chart {source}: the registry's token service {realm} does not use TLS, so "
            "credentials are not sent to it"
        )
    token = await _token(session, challenge, credentials)
    if not token:
        raise refused(source, credentials)
    return f"Bearer {token}"


def refused(source: str, credentials: Credentials | None) -> RegistryRefused:
    """Return the error for a registry that denies a chart to this client."""
    if credentials is None:
        return RegistryRefused(
            f"chart {source}: the registry requires credentials (401): name a Secret with them in "
            "pullSecretRef"
        )
    return RegistryRefused(
        f"chart {source}: the registry refuses the credentials (401): correct the Secret in "
        "pullSecretRef"
    )


async def _token(
    session: aiohttp.ClientSession, challenge: Challenge, credentials: Credentials | None
) -> str:
    asked = {
        name: challenge.parameters[name]
        for name in ("service", "scope")
        if name in challenge.parameters
    }
    headers = {} if credentials is None else {"Authorization": credentials.basic}
    url = URL(challenge.parameters["realm"]).update_query(asked)
    async with session.get(url, headers=headers) as answer:
        if answer.status != 200:
            return ""
        try:
            value = orjson.loads(await _read(answer.content))
        except ValueError:
            return ""
    found = value if isinstance(value, dict) else {}
    return str(found.get("token") or found.get("access_token") or "")


async def _read(content: aiohttp.StreamReader) -> bytes:
    """Return the whole content, which may arrive in pieces, up to a limit that tokens never reach.

    Raises:
        ValueError: It exceeds the limit.
    """
    found = bytearray()
    async for piece in content.iter_any():
        found += piece
        if len(found) > _TOKEN_BYTES:
            raise ValueError("too large")
    return bytes(found)
