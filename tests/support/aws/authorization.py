"""The permissions that AWS checks before it answers a request.

A request needs several permissions: one for each resource that it names or creates, and one for the
tags of what it creates (AWS's service authorization reference).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from aiohttp import web

from pergola.api.objects import JsonObject
from pergola.sandbox.aws.answers import Answer, Call, call_of
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.moto import service_of
from tests.support.aws.policies import allows

_ELB: Final = "elasticloadbalancing"
_READS: Final = ("Describe", "Get", "List")
_ID: Final = re.compile(r"(ami|eni|i|rtb|sg|subnet|vol|vpc)-[0-9a-f]+")
_TYPES: Final = {
    "ami": "image",
    "eni": "network-interface",
    "i": "instance",
    "rtb": "route-table",
    "sg": "security-group",
    "subnet": "subnet",
    "vol": "volume",
    "vpc": "vpc",
}
_CREATED: Final = {
    "CreateSecurityGroup": ("security-group",),
    "CreateVolume": ("volume",),
    "RunInstances": ("instance", "network-interface", "volume"),
}
_IDS: Final = {
    "CreateSecurityGroup": "groupId",
    "CreateVolume": "volumeId",
    "RunInstances": "instanceId",
}
"""The elements of answers with the ids of what was created with tags."""
_ARNS: Final = ("LoadBalancerArn", "TargetGroupArn", "ListenerArn")
_PARTS: Final = ("CreateListener",)
"""Operations that need a permission for the resource to which they add, not for what they add."""
_CLASSIC: Final = "2012-06-01"
_TAG: Final = re.compile(r"(.*Tags?\.(?:member\.)?\d+)\.Key")
_RANDOM: Final = ("Name", "kubernetes.io/service-name")
"""Tags whose values differ each time."""

Tags = Mapping[str, str]
_NONE: Final[Tags] = {}


class Authorization(NamedTuple):
    """An action on one resource.

    Attributes:
        resource: its type, such as `ec2:instance/*`; `*` for all.
        request_tags: that the request sets.
        resource_tags: that the resource has.
        create_action: the operation that creates what is tagged; empty for existing resources.
    """

    action: str
    resource: str
    request_tags: Tags = _NONE
    resource_tags: Tags = _NONE
    create_action: str = ""

    def context(self) -> dict[str, list[str]]:
        """Return the keys of conditions with their values."""
        service = self.action.partition(":")[0]
        return {
            **{f"aws:RequestTag/{key}": [value] for key, value in self.request_tags.items()},
            **{f"aws:ResourceTag/{key}": [value] for key, value in self.resource_tags.items()},
            **({"aws:TagKeys": [*self.request_tags]} if self.request_tags else {}),
            **({f"{service}:CreateAction": [self.create_action]} if self.create_action else {}),
        }

    def is_allowed(self, *policies: JsonObject) -> bool:
        """Return whether any of the policies of an identity allows it."""
        return any(allows(each, self.action, self.resource, self.context()) for each in policies)

    def data(self) -> JsonObject:
        """Return its data for a recorded fact, without values that differ each time."""
        found: JsonObject = {"action": self.action, "resource": self.resource}
        for name, tags in (
            ("requestTags", self.request_tags),
            ("resourceTags", self.resource_tags),
        ):
            if tags:
                found[name] = {
                    key: "any" if key in _RANDOM else value for key, value in sorted(tags.items())
                }
        return {**found, **({"createAction": self.create_action} if self.create_action else {})}

    @classmethod
    def of_data(cls, data: JsonObject) -> "Authorization":
        """Return the one with such data."""
        return cls(
            data["action"],
            data["resource"],
            data.get("requestTags", _NONE),
            data.get("resourceTags", _NONE),
            data.get("createAction", ""),
        )


class AskingAws(CorrectedAws):
    """An AWS that notes which permissions a program needs.

    Attributes:
        asked: those that programs in Go needed; tests are in Python.
    """

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.asked: list[Authorization] = []
        self._tags: dict[str, Tags] = {}

    async def _pass(self, request: web.Request) -> web.Response:
        body = await request.read()
        call = call_of(service_of(request), request, body)
        needed = [*_needed(call, self._tags)]
        if "go" in request.headers.get("User-Agent", "").lower():
            self.asked += needed
        answer = await super()._pass(request)
        if answer.status == web.HTTPOk.status_code and isinstance(answer.body, bytes):
            self._note(call, answer.body)
        return answer

    def _note(self, call: Call, body: bytes) -> None:
        """Keep the tags of created resources, by their ids, names or ARNs."""
        tags = _request_tags(call)
        if not tags:
            return
        if call.service == _ELB and call.parameters.get("Version") == _CLASSIC:
            self._tags.update(dict.fromkeys(_values(call, "LoadBalancerName"), tags))
        elif call.service == _ELB:
            answer = Answer(body)
            for name in _ARNS:
                if found := answer.text(name):
                    self._tags.setdefault(found, tags)
        elif call.operation in _IDS:
            for each in Answer(body).named(_IDS[call.operation]):
                self._tags[each.text or ""] = tags


def _needed(call: Call, tags: Mapping[str, Tags]) -> Iterator[Authorization]:
    action = f"{call.service}:{call.operation}"
    if call.service not in ("ec2", _ELB):
        return
    if call.operation.startswith(_READS):
        yield Authorization(action, "*")
        return
    for kind in _new(call):
        tags_of_new = _request_tags(call, kind)
        if call.operation not in _PARTS:
            yield Authorization(action, kind, tags_of_new)
        if tags_of_new:
            tagging = "CreateTags" if call.service == "ec2" else "AddTags"
            yield Authorization(
                f"{call.service}:{tagging}", kind, tags_of_new, create_action=call.operation
            )
    for name in sorted(set(call.parameters.values())):
        if kind := _type_of(call, name):
            sent = {} if _new(call) else _request_tags(call)
            yield Authorization(action, kind, sent, tags.get(name, _NONE))


def _new(call: Call) -> list[str]:
    """Return the types of the resources that a request creates."""
    if call.service == "ec2":
        return [f"ec2:{kind}/*" for kind in _CREATED.get(call.operation, ())]
    classic = call.parameters.get("Version") == _CLASSIC
    return {
        "CreateLoadBalancer": [f"{_ELB}:loadbalancer/{'*' if classic else 'net/*'}"],
        "CreateTargetGroup": [f"{_ELB}:targetgroup/*"],
        "CreateListener": [f"{_ELB}:listener/net/*"] if _request_tags(call) else [],
    }.get(call.operation, [])


def _type_of(call: Call, value: str) -> str:
    """Return the type of the existing resource with an id, name or ARN; empty for other values."""
    if call.service == "ec2":
        if not (found := _ID.fullmatch(value)):
            return ""
        # By its name, the policy tells an existing volume from one that is created.
        return f"ec2:{_TYPES[found[1]]}/{'vol-*' if found[1] == 'vol' else '*'}"
    if value.startswith("arn:"):
        kind = value.split(":")[5].split("/")
        return f"{_ELB}:{'/'.join(kind[:1] if kind[0] == 'targetgroup' else kind[:2])}/*"
    is_named = value in _values(call, "LoadBalancerName") and not _new(call)
    return f"{_ELB}:loadbalancer/*" if is_named else ""


def _values(call: Call, name: str) -> list[str]:
    return [value for key, value in call.parameters.items() if key.startswith(name)]


def _request_tags(call: Call, kind: str = "") -> dict[str, str]:
    """Return the tags in a request.

    Args:
        kind: of what the request creates; a request to EC2 has tags for each type.
    """
    return {
        name: call.parameters.get(f"{found[1]}.Value", "")
        for key, name in call.parameters.items()
        if (found := _TAG.fullmatch(key)) and (not kind or _type_of_tags(call, key) in (None, kind))
    }


def _type_of_tags(call: Call, key: str) -> str | None:
    """Return the type for which a request to EC2 sets a tag; None if it does not name one."""
    specification = re.match(r"TagSpecification\.\d+", key)
    if specification is None:
        return None
    return f"ec2:{call.parameters.get(f'{specification[0]}.ResourceType')}/*"
