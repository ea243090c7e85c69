"""`pergola network-policy`: explain who may talk to a Service."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cyclopts import App

from pergola.cli.cluster_options import NamespaceOptions
from pergola.cli.output import ShowOutput, object_name, show
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, Key
    from pergola.controllers.network_policy import Settings
    from pergola.controllers.network_policy.explanation import Caller, Explanation, Policy

_GAP: Final = "   "
_DEFAULT: Final = NamespaceOptions()
_SUBJECTS: Final = {"ingress": "ingress controller", "istio": "Istio gateway"}

app: Final = App(
    name="network-policy",
    help="Explain the NetworkPolicies that are generated for Services.",
)


class UsageError(Exception):
    """The arguments are not valid; the text says how to correct them."""


@app.command
def explain(
    service: str,
    /,
    *,
    config: Path | None = None,
    output: ShowOutput = "text",
    cluster: NamespaceOptions = _DEFAULT,
) -> None:
    """Print who may talk to a Service, why, and whether the policies exist.

    Decides as the controller does, from the current state of the cluster, and writes nothing.

    Parameters
    ----------
    service
        The Service, as NAMESPACE/NAME, or NAME in the namespace of -n.
    config
        Configuration file of the resource manager. Without it, all namespaces are served, there is
        no ingress controller, and policies do not wait for pods.
    """
    explanation = asyncio.run(_explained(_key(service, cluster), config, cluster))
    show(
        output,
        data=_json(explanation),
        names=[
            object_name("NetworkPolicy", "networking.k8s.io", each.key.name)
            for each in explanation.policies
        ],
        text=lambda: say("\n".join(_lines(explanation))),
    )


def _key(service: str, cluster: NamespaceOptions) -> "Key":
    from pergola.api.objects import Key

    namespace, slash, name = service.rpartition("/")
    if not name or (slash and not namespace) or "/" in namespace:
        raise UsageError(
            f'"{service}" is not a Service: use NAMESPACE/NAME, such as demo/web, or NAME with -n'
        )
    if namespace and cluster.namespace not in ("", namespace):
        raise UsageError(f"{service} is in namespace {namespace}, but -n says {cluster.namespace}")
    return Key(namespace or cluster.chosen_namespace(), name)


async def _explained(
    service: "Key", config: Path | None, cluster: NamespaceOptions
) -> "Explanation":
    from pergola.controllers.network_policy.explanation import explain
    from pergola.runtime.logging import configure

    configure("error", "text")
    settings = _settings(config)
    async with cluster.connect() as client:
        return await explain(client, service, settings)


def _settings(config: Path | None) -> "Settings":
    from pergola.cli.configuration import read_settings
    from pergola.controllers.network_policy import Settings
    from pergola.resource_manager.network_policies import network_policy_settings

    return Settings() if config is None else network_policy_settings(read_settings(config))


# For people


def _lines(explanation: "Explanation") -> Iterator[str]:
    from pergola.api.texts import counted
    from pergola.controllers.network_policy.names import PREFIX

    head = f"Service {explanation.service}"
    if explanation.selector:
        head += f" selects {explanation.selector}: {counted(explanation.pods, 'pod')} now"
    yield head
    if explanation.refusal:
        yield f"There are no policies for it: {explanation.refusal}."
    elif not explanation.callers:
        yield "It admits no callers: it has neither ports nor annotations that allow any."
    if explanation.callers:
        heads = ("WHO", "IN", "PORT", "PODS", "POLICIES", "BECAUSE OF")
        yield ""
        yield from _table(heads, [_caller_row(caller, PREFIX) for caller in explanation.callers])
        yield f"Labels have the value allowed; they and annotations begin with {PREFIX}"
    yield from _policy_lines(explanation)
    for problem in explanation.problems:
        yield f"\nPROBLEM   {problem}"


def _policy_lines(explanation: "Explanation") -> Iterator[str]:
    if explanation.policies:
        yield ""
        rows = [(p.key.namespace, p.key.name, _state(p)) for p in explanation.policies]
        yield from _table(("NAMESPACE", "POLICY", "STATE"), rows)
    if explanation.others:
        names = ", ".join(key.name for key in explanation.others)
        yield f"\nOther policies also allow ingress to these pods: {names}"


def _caller_row(caller: "Caller", prefix: str) -> tuple[str, ...]:
    if caller.kind == "world":
        who, where = "everybody", "anywhere"
    else:
        where = caller.namespace
        subject = _SUBJECTS.get(caller.kind)
        who = f"{subject} {caller.selector}" if subject else caller.label.removeprefix(prefix)
    ports = ", ".join(caller.ports) or "any"
    pods = "" if caller.pods is None else str(caller.pods)
    because = caller.because.removeprefix(prefix)
    return (who, where, ports, pods, _summary(caller.policies), because)


def _summary(policies: Sequence["Policy"]) -> str:
    """Return `present`, or the exceptions, such as `1 of 2 missing`."""
    states = [policy.state for policy in policies]
    if len(set(states)) == 1:
        return states[0]
    odd = sorted(set(states) - {"present"})
    return ", ".join(f"{states.count(state)} of {len(states)} {state}" for state in odd)


def _state(policy: "Policy") -> str:
    if policy.state != "foreign":
        return policy.state
    return f"foreign: of Service {policy.owner}" if policy.owner else "foreign: of no Service"


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        yield _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


# For programs


def _json(explanation: "Explanation") -> "JsonObject":
    return {
        "service": {
            "namespace": explanation.service.namespace,
            "name": explanation.service.name,
            "selector": explanation.selector,
            "pods": explanation.pods,
        },
        "refusal": explanation.refusal,
        "callers": [_json_caller(caller) for caller in explanation.callers],
        "policies": _json_policies(explanation.policies),
        "others": [key.name for key in explanation.others],
        "problems": list(explanation.problems),
    }


def _json_caller(caller: "Caller") -> "JsonObject":
    return {
        "kind": caller.kind,
        "namespace": caller.namespace,
        "label": caller.label,
        "fullLabel": caller.full_label,
        "selector": caller.selector,
        "ports": list(caller.ports),
        "because": caller.because,
        "pods": caller.pods,
        "policies": _json_policies(caller.policies),
    }


def _json_policies(policies: Iterable["Policy"]) -> list["JsonObject"]:
    return [
        {
            "namespace": policy.key.namespace,
            "name": policy.key.name,
            "state": policy.state,
            "owner": str(policy.owner) if policy.owner else None,
        }
        for policy in policies
    ]
