"""Kinds by the words that users type: `deploy`, `managedresources`, `deployments.apps`."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from pergola.api.objects import JsonObject, maps_at
from pergola.kube.client import Client
from pergola.kube.discovery import Resource, group_version_path, resources_in
from pergola.kube.errors import ApiError, KubeError

_AT_ONCE: Final = 16


class UnknownWord(KubeError):
    """A word that does not name a kind of the API server."""


async def kind_called(client: Client, word: str) -> Resource:
    """Return the kind that a word names; like kubectl, prefer the core group.

    Args:
        word: A plural, singular or short name, or a kind, in any case. The group can follow, after
            a dot: `deployments.apps`.

    Raises:
        UnknownWord: No kind has the name.
    """
    name, _, suffix = word.lower().partition(".")
    if not suffix:
        for resource in await _served(client, "", "v1", name):
            return resource
    groups = [each for each in await _groups(client) if _fits(suffix, *each)]
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(group: str, version: str) -> list[Resource]:
        async with limit:
            return await _served(client, group, version, name)

    tasks = [asyncio.create_task(one(*each)) for each in groups]
    try:
        for task in tasks:
            for resource in await task:
                return resource
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    raise UnknownWord(
        f'the API server has no kind "{word}"; write it as kubectl does, such as deployment/web'
    )


async def listable_kinds(client: Client) -> list[Resource]:
    """Return all kinds whose objects can be listed, each in the preferred version of its group.

    Kinds of API services that are not available are missing.
    """
    preferred = dict(reversed([*await _groups(client)]))
    return [
        resource
        for version in (("", "v1"), *sorted(preferred.items()))
        for resource, served in await _kinds(client, *version)
        if "list" in served["verbs"]
    ]


async def _groups(client: Client) -> Iterable[tuple[str, str]]:
    """Return the groups, each with its preferred version first."""
    answer = orjson.loads(await client.get_raw("/apis"))
    return list(_versions(answer))


def _versions(answer: JsonObject) -> Iterator[tuple[str, str]]:
    for group in maps_at(answer, "groups"):
        preferred = (group.get("preferredVersion") or {}).get("version")
        versions = [str(each.get("version")) for each in maps_at(group, "versions")]
        for version in sorted(versions, key=lambda it: it != preferred):
            yield str(group.get("name")), version


def _fits(suffix: str, group: str, version: str) -> bool:
    return suffix in ("", group, f"{version}.{group}")


async def _served(client: Client, group: str, version: str, name: str) -> list[Resource]:
    found = await _kinds(client, group, version)
    return [resource for resource, served in found if name in _names(served)]


async def _kinds(client: Client, group: str, version: str) -> list[tuple[Resource, JsonObject]]:
    """Return the kinds of a version, each with its entry in the answer."""
    try:
        answer = orjson.loads(await client.get_raw(group_version_path(group, version)))
    except ApiError:
        return []  # an API service that is unavailable; its kinds are unknown now
    return [*resources_in(answer, group, version)]


def _names(served: JsonObject) -> set[str]:
    names = {served["name"], served.get("singularName") or "", str(served["kind"]).lower()}
    return (names | set(served.get("shortNames") or ())) - {""}
