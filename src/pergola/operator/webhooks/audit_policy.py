"""Admission of a Garden's audit policies: API servers do not start with an invalid one.

The rules are those of kube-apiserver (spec 21 §9.3).
"""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

from pergola.admission import (
    Registration,
    Request,
    Rule,
    Verdict,
    Webhook,
    allowed,
    errored,
    invalid,
)
from pergola.api.core_v1_validation import is_dns_subdomain
from pergola.api.field_errors import Cause
from pergola.api.field_errors import invalid as invalid_field
from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    JsonValue,
    Key,
    deletion_timestamp_of,
    map_at,
    maps_at,
    name_of,
)
from pergola.api.operator_v1alpha1 import GARDEN, GROUP, VERSION
from pergola.kube.errors import KubeError
from pergola.kube.patches import same
from pergola.kube.yaml import YamlError, parse
from pergola.operator.webhooks.lookups import Lookups
from pergola.operator.webhooks.namespace import GARDEN_NAMESPACE, NAMESPACE_NAME

KEY: Final = "policy"
_VERSION: Final = "audit.k8s.io/v1"
_LEVELS: Final = ("None", "Metadata", "Request", "RequestResponse")
_STAGES: Final = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")


def policy_problems(config_map: JsonObject) -> list[str]:
    """Return all problems of the policy in a ConfigMap."""
    data = config_map.get("data")
    text = data.get(KEY) if isinstance(data, dict) else None
    if text is None:
        return [f"data.{KEY} is missing"]
    if not text:
        return [f"data.{KEY} is empty"]
    try:
        policy = parse(text)
    except YamlError as error:
        return [f"data.{KEY} is not valid YAML: {error}"]
    return [f"data.{KEY}: {problem}" for problem in _policy_problems(policy)]


def _policy_problems(policy: JsonValue) -> Iterator[str]:
    if not isinstance(policy, dict):
        yield "must be a map"
        return
    gvk = GroupVersionKind.of(policy)
    if (gvk.api_version, gvk.kind) != (_VERSION, "Policy"):
        yield f"must be a Policy of {_VERSION}, not {gvk.kind or 'of no kind'} of {gvk.api_version}"
        return
    yield from _stages(policy, "omitStages")
    rules = policy.get("rules")
    if rules is not None and not isinstance(rules, list):
        yield "rules must be a list"
    for index, rule in enumerate(rules if isinstance(rules, list) else ()):
        path = f"rules[{index}]"
        if isinstance(rule, dict):
            yield from _rule(rule, path)
        else:
            yield f"{path} must be a map"


def _rule(rule: JsonObject, path: str) -> Iterator[str]:
    level = rule.get("level")
    if not level:
        yield f"{path}.level is required"
    elif level not in _LEVELS:
        yield f"{path}.level must be one of {', '.join(_LEVELS)}"
    urls = rule.get("nonResourceURLs") or []
    if urls and (rule.get("resources") or rule.get("namespaces")):
        yield f"{path}.nonResourceURLs: rules cannot apply to both resources and non-resource URLs"
    for url in urls if isinstance(urls, list) else ():
        yield from _url(str(url), f"{path}.nonResourceURLs")
    for index, resource in enumerate(maps_at(rule, "resources")):
        yield from _resource(resource, f"{path}.resources[{index}]")
    yield from _stages(rule, f"{path}.omitStages")


def _url(url: str, path: str) -> Iterator[str]:
    if url == "*":
        return
    if not url.startswith("/"):
        yield f'{path}: "{url}" must begin with "/" or be "*"'
    if "*" in url[:-1]:
        yield f'{path}: "{url}" can have a "*" only at its end'


def _resource(resource: JsonObject, path: str) -> Iterator[str]:
    group = resource.get("group") or ""
    if group and not is_dns_subdomain(str(group)):
        yield f"{path}.group must be the name of an API group, without its version"
    if resource.get("resourceNames") and not resource.get("resources"):
        yield f"{path}.resourceNames requires at least one resource"


def _stages(holder: JsonObject, path: str) -> Iterator[str]:
    stages = holder.get("omitStages") or []
    for stage in stages if isinstance(stages, list) else (stages,):
        if stage not in _STAGES:
            yield f"{path} must have only stages of {', '.join(_STAGES)}"


def _policy_in(variable: str) -> str:
    data = f"{variable}.data"
    return f"(has({data}) && '{KEY}' in {data} ? {data}['{KEY}'] : '')"


_OTHER_POLICY: Final[JsonObject] = {
    "name": "other-policy",
    "expression": "request.resource.resource != 'configmaps' || "
    f"{_policy_in('object')} != {_policy_in('oldObject')}",
}
"""All other updates of ConfigMaps in the namespace go on while no operator answers."""
REGISTRATION: Final = Registration(
    name="audit-policies.operator.gardener.cloud",
    path="/webhooks/audit-policies",
    kind="validating",
    rules=(
        Rule(("CREATE", "UPDATE"), (GROUP,), (VERSION,), ("gardens",)),
        Rule(("UPDATE",), ("",), ("v1",), ("configmaps",)),
    ),
    namespace_selector={"matchLabels": {NAMESPACE_NAME: GARDEN_NAMESPACE}},
    match_policy="Exact",
    match_conditions=(_OTHER_POLICY,),
)
_REFERENCE: Final = ("auditConfig", "auditPolicy", "configMapRef")
_SERVERS: Final = (("kubernetes", "kubeAPIServer"), ("gardener", "gardenerAPIServer"))


def references_of(garden: JsonObject) -> dict[str, str]:
    """Return the names of the ConfigMaps with audit policies, by field path."""
    found = {}
    for server in _SERVERS:
        path = ("spec", "virtualCluster", *server, *_REFERENCE)
        if name := map_at(garden, *path).get("name"):
            found[".".join((*path, "name"))] = str(name)
    return found


class AuditPolicies:
    """The handler of the webhook."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups

    async def __call__(self, request: Request) -> Verdict:
        """Review a Garden that refers to policies, or a ConfigMap with one."""
        new, old = request.object, request.old_object
        if new is None:
            return allowed(because=f"{request.operation} stores nothing")
        try:
            if request.kind == GARDEN:
                return await self._garden(new, old)
            if request.kind == CONFIG_MAP and old is not None:
                return await self._config_map(new, old)
        except KubeError as error:
            return errored(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        return allowed(because="it has no audit policy")

    async def _garden(self, new: JsonObject, old: JsonObject | None) -> Verdict:
        if deletion_timestamp_of(new):
            return allowed(because="the Garden is being deleted")
        references = references_of(new)
        if old is not None and references == references_of(old) and _same_version(new, old):
            return allowed(because="neither the policies nor the version changed")
        causes = [cause for at, name in references.items() for cause in await self._named(at, name)]
        if causes:
            return invalid(f"Garden.{GROUP}", name_of(new), tuple(causes))
        return allowed(because="the audit policies are valid")

    async def _named(self, path: str, name: str) -> list[Cause]:
        found = await self._lookups.config_map(Key(GARDEN_NAMESPACE, name))
        if found is None:
            missing = f"ConfigMap {GARDEN_NAMESPACE}/{name} does not exist"
            return [invalid_field(path, name, missing)]
        return [invalid_field(path, name, problem) for problem in policy_problems(found)]

    async def _config_map(self, new: JsonObject, old: JsonObject) -> Verdict:
        if same(map_at(new, "data").get(KEY), map_at(old, "data").get(KEY)):
            return allowed(because="the policy is unchanged")
        gardens = await self._lookups.gardens()
        if name_of(new) not in {name for g in gardens for name in references_of(g).values()}:
            return allowed(because="no Garden refers to the ConfigMap")
        if causes := tuple(check_config_map(new)):
            return invalid("ConfigMap", name_of(new), causes)
        return allowed(because="the audit policy is valid")


def audit_policies(lookups: Lookups) -> Webhook:
    """Return the webhook that validates audit policies."""
    return Webhook(registration=REGISTRATION, handler=AuditPolicies(lookups))


def _same_version(new: JsonObject, old: JsonObject) -> bool:
    path = ("spec", "virtualCluster", "kubernetes")
    return same(map_at(new, *path).get("version"), map_at(old, *path).get("version"))


def check_config_map(config_map: JsonObject) -> Iterator[Cause]:
    """Yield the findings about a ConfigMap with an audit policy."""
    for problem in policy_problems(config_map):
        yield Cause("FieldValueInvalid", f"Invalid value: {problem}", f"data.{KEY}")
