"""Rules for a `providerConfig`, as data: values that cannot work, and their replacements."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pergola.admission.draft import Draft, Path
from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue
from pergola.extensions.webhooks.declare import WebhookError
from pergola.extensions.webhooks.mutation import Mutate

NETWORK_CONFIG: Path = ("spec", "providerConfig")
SHOOT_NETWORK_CONFIG: Path = ("spec", "networking", "providerConfig")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRule:
    """Values that a field must not have.

    Attributes:
        path: the path of the field in the config.
        unfit: the values that cannot work; None represents an absent field.
        instead: the value that replaces them.
        because: the reason, for people who wonder about the change.
        when: whether the rule applies to a config.
        spares_existing: whether an object that already has the value keeps it.

    Raises:
        WebhookError: the replacement is itself unfit, which would cause a loop.
    """

    path: tuple[str, ...]
    unfit: Sequence[JsonValue]
    instead: JsonValue
    because: str
    when: Callable[[JsonObject], bool] = lambda _: True
    spares_existing: bool = False

    def __post_init__(self) -> None:
        if _is_among(self.instead, self.unfit):
            raise WebhookError(f"{'.'.join(self.path)}: {self.instead!r} would replace itself")


def config_mutator(
    gvk: GroupVersionKind, rules: Sequence[ConfigRule], *, at: Path = NETWORK_CONFIG
) -> Mutate:
    """Return a mutator that applies rules, in order, to configs of one group.

    Configs of other groups are not changed. A missing config, or one without a type, counts as one
    of this group, because the provider interprets it that way (spec 40 §10). Fields without a rule
    are kept, including unknown ones.
    """

    def mutate(draft: Draft, old: JsonObject | None) -> None:
        if not is_own(draft.get(*at), gvk.group):
            return
        before = Draft(old).get(*at) if old is not None else None
        for rule in rules:
            _apply(rule, draft, before, gvk, at)

    return mutate


def is_own(config: JsonValue, group: str) -> bool:
    """Return whether a config belongs to a group, or does not name another one."""
    if config is None:
        return True
    if not isinstance(config, dict):
        return False
    version = config.get("apiVersion")
    return not version or str(version).partition("/")[0] == group


def _apply(
    rule: ConfigRule, draft: Draft, before: JsonValue, gvk: GroupVersionKind, at: Path
) -> None:
    config = draft.get(*at)
    present = draft.get(*at, *rule.path)
    if not rule.when(config if isinstance(config, dict) else {}):
        return
    if not _is_among(present, rule.unfit) or (rule.spares_existing and _had(rule, before)):
        return
    if config is None:
        draft.set(at, {"apiVersion": gvk.api_version, "kind": gvk.kind}, rule.because)
    draft.set((*at, *rule.path), rule.instead, rule.because)


def _had(rule: ConfigRule, before: JsonValue) -> bool:
    """Return whether the stored object has the same value."""
    return isinstance(before, dict) and _is_among(Draft(before).get(*rule.path), rule.unfit)


def _is_among(value: JsonValue, values: Sequence[JsonValue]) -> bool:
    """Return whether a value is among others by JSON equality: `false` is not `0`."""
    return any(type(value) is type(other) and value == other for other in values)
