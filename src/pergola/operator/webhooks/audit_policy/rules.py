"""Rules about audit policies, as kube-apiserver validates them."""

from collections.abc import Iterator
from typing import Final

from pergola.api.core_v1_validation import is_dns_subdomain
from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue, maps_at
from pergola.kube.yaml import YamlError, parse

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
    return [f"data.{KEY}: {problem}" for problem in _policy(policy)]


def _policy(policy: JsonValue) -> Iterator[str]:
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
