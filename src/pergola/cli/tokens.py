"""`pergola tokens`: the tokens that the token requestor renews, and those it cannot renew."""

import asyncio
from collections.abc import Collection, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from pergola.api.kinds import EVENT, SECRET
from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.output import ListOutput, object_name, print_table, show
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, Key
    from pergola.kube.client import Client
    from pergola.resource_manager.controllers.token_requestor.observe import SeenSecret, TokenFacts

_EVERYWHERE: Final = (None,)


class TokensError(Exception):
    """The options contradict each other."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One requested token; unknown fields are empty or None.

    Attributes:
        account: The ServiceAccount in the target cluster.
        target: The Secret there that contains the token; None if the Secret itself does.
        last_error: The last warning, unless the token was issued later; or why no instance of the
            token requestor serves the Secret.
    """

    key: "Key"
    resource_class: str
    account: str
    target: str | None
    issued: datetime | None
    expires: datetime | None
    next_renewal: str
    last_error: str


def tokens(
    *,
    namespace: Annotated[list[str] | None, Parameter(alias="-n", negative="")] = None,
    all_namespaces: Annotated[bool, Parameter(alias="-A", negative="")] = False,
    selector: Annotated[str, Parameter(alias="-l")] = "",
    output: ListOutput = "table",
    cluster: ClusterOptions = DEFAULT_CLUSTER,
    target_kubeconfig: Path | None = None,
    target_context: str | None = None,
) -> None:
    """Print all requested tokens: owner, age, next renewal and last error.

    Reads the Secrets that request a token, and the Events of the token requestor about them; never
    prints the tokens themselves. The cluster is the one with these Secrets.

    Parameters
    ----------
    namespace
        Only Secrets of this namespace; repeat for several. All namespaces by default.
    all_namespaces
        Secrets of all namespaces, which is the default.
    selector
        Only Secrets with these labels.
    target_kubeconfig
        The cluster that issues the tokens; required only for the age of tokens stored there.
    target_context
        Context of that kubeconfig.
    """
    if all_namespaces and namespace:
        raise TokensError("give either --namespace or --all-namespaces")
    target = cluster.beside(target_kubeconfig, target_context)
    rows = asyncio.run(_observe(namespace or (), selector, cluster, target))

    show(
        output,
        data=[_json(row) for row in rows],
        names=[object_name("Secret", "", row.key.name) for row in rows],
        text=lambda: _print(rows, is_wide=output == "wide"),
    )


async def _observe(
    namespaces: Collection[str],
    selector: str,
    source: ClusterOptions,
    target: ClusterOptions,
) -> list[TokenRow]:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(source.connect())
        issuer = None
        if target.are_given:
            issuer = await stack.enter_async_context(target.connect())
        rows = [
            await _row(seen, errors, issuer)
            for namespace in sorted(set(namespaces)) or _EVERYWHERE
            for seen, errors in await _requested(client, namespace, selector)
        ]
    return sorted(rows, key=lambda row: row.key)


async def _requested(
    client: "Client", namespace: str | None, extra: str
) -> "list[tuple[SeenSecret, list[tuple[str, str]]]]":
    """Return the Secrets of a namespace, each with the time and text of its warnings."""
    from pergola.api.objects import map_at
    from pergola.resource_manager.controllers.token_requestor import names
    from pergola.resource_manager.controllers.token_requestor.controller import NAME
    from pergola.resource_manager.controllers.token_requestor.observe import observe

    selector = ",".join(filter(None, (names.selector(names.ALL_CLASSES), extra)))
    found = [observe(secret) for secret in await client.list(SECRET, namespace, labels=selector)]
    warnings: dict[str, list[tuple[str, str]]] = {}
    fields = f"reportingController={NAME},type=Warning"
    for event in await client.list(EVENT, namespace, fields=fields):
        uid = str(map_at(event, "regarding").get("uid", ""))
        last = map_at(event, "series").get("lastObservedTime") or event.get("eventTime")
        warnings.setdefault(uid, []).append((str(last or ""), str(event.get("note", ""))))
    return [(seen, warnings.get(seen.uid, [])) for seen in found]


async def _row(
    seen: "SeenSecret", errors: list[tuple[str, str]], issuer: "Client | None"
) -> TokenRow:
    from pergola.resource_manager.controllers.token_requestor import names

    given = seen.annotations.get
    target = (given(names.TARGET_NAMESPACE), given(names.TARGET_NAME))
    has_target = all(target)
    token = seen.holding.token
    if has_target and issuer is not None:
        token = await _target_token(issuer, str(target[0]), str(target[1]))
    issued = token.issued if token else None
    return TokenRow(
        key=seen.key,
        resource_class=seen.resource_class,
        account=f"{given(names.NAMESPACE, '')}/{given(names.NAME, '')}",
        target=f"{target[0]}/{target[1]}" if has_target else None,
        issued=issued,
        expires=token.expires if token else None,
        next_renewal=given(names.RENEW, ""),
        last_error=_last(errors, issued) or _unserved(seen),
    )


async def _target_token(issuer: "Client", namespace: str, name: str) -> "TokenFacts | None":
    from pergola.api.objects import Key
    from pergola.kube.errors import NotFound
    from pergola.resource_manager.controllers.token_requestor.observe import holding_of

    try:
        return holding_of(await issuer.get(SECRET, Key(namespace, name))).token
    except NotFound:
        return None


def _last(errors: Iterable[tuple[str, str]], issued: datetime | None) -> str:
    from pergola.health.times import read_time

    written, text = max(errors, default=("", ""))
    moment = read_time(written)
    outdated = moment is not None and issued is not None and moment < issued
    return "" if outdated else text


def _unserved(seen: "SeenSecret") -> str:
    """Return why a Secret is probably not handled; empty if an instance has handled it."""
    from pergola.resource_manager.controllers.token_requestor import names

    if names.RENEW in seen.annotations:
        return ""
    if not seen.resource_class:
        return f"no token yet: the label {names.CLASS} is missing; set it to an instance's class"
    return f'no token yet: no instance has served class "{seen.resource_class}"'


def _json(row: TokenRow) -> "JsonObject":
    return {
        "namespace": row.key.namespace,
        "name": row.key.name,
        "class": row.resource_class,
        "serviceAccount": row.account,
        "targetSecret": row.target,
        "issued": row.issued.isoformat() if row.issued else None,
        "expires": row.expires.isoformat() if row.expires else None,
        "nextRenewal": row.next_renewal or None,
        "lastError": row.last_error or None,
    }


def _print(rows: list[TokenRow], *, is_wide: bool) -> None:
    from pergola.health.times import read_time
    from pergola.runtime.clock import SystemClock

    if not rows:
        say("no Secret requests a token")
        return
    now = SystemClock().now()
    heads = ("SECRET", "CLASS", "SERVICE ACCOUNT", "AGE", "EXPIRES IN", "RENEWED IN")
    cells = [
        (
            f"{row.key}" if row.target is None else f"{row.key} -> {row.target}",
            row.resource_class,
            row.account,
            _span(now - row.issued) if row.issued else "",
            _until(row.expires, now),
            _until(read_time(row.next_renewal), now),
        )
        for row in rows
    ]
    if is_wide:
        print_table(
            (*heads, "LAST ERROR"),
            [(*each, row.last_error) for each, row in zip(cells, rows, strict=True)],
        )
        return
    print_table(heads, cells)
    for row in rows:
        if row.last_error:  # too long for a cell
            say(f"{row.key}: {row.last_error}")


def _until(moment: datetime | None, now: datetime) -> str:
    """Return the time until a moment, or since then."""
    if moment is None:
        return ""
    return _span(moment - now) if moment >= now else f"{_span(now - moment)} ago"


def _span(span: timedelta) -> str:
    from pergola.api.durations import format_duration

    return format_duration(timedelta(seconds=round(span.total_seconds())))
