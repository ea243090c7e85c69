"""The configuration files of the resource manager and the operator."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences, refusals
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.configurations import OPERATOR, RESOURCE_MANAGER, configurations
from pergola.api import operator_config, resource_manager_config
from pergola.api.component_config import ConfigurationInvalid, Loaded
from pergola.api.durations import DurationError, parse_duration
from pergola.api.objects import JsonObject, JsonValue


class Configurations:
    """Files of one kind.

    Args:
        base: a file with every setting of the original, which are those that are compared.
        load: reads a file.
        sections: the names of Pergola's sections that are not the original's, with the original's.
    """

    of: OracleModule = GARDENER

    def __init__(
        self,
        name: str,
        title: str,
        base: JsonObject,
        load: Callable[[JsonValue], Loaded[Any]],
        sections: dict[str, str],
    ) -> None:
        self.name = name
        self.ask = name
        self.title = title
        self.code = (load.__module__, f"{load.__module__.rpartition('.')[0]}.validation")
        self._base = base
        self._load = load
        self._sections = sections

    def table(self) -> Iterator[JsonObject]:
        """Yield the complete file, and files with one section each."""
        yield self._base
        kind = {name: self._base[name] for name in ("apiVersion", "kind")}
        yield kind
        for name in self._base:
            yield {**kind, name: self._base[name]}
        # The renewal of a Lease must fit between two attempts.
        election = {**self._base["leaderElection"], "renewDeadline": "1s"}
        del election["retryPeriod"]
        yield {**self._base, "leaderElection": election}
        for name, controller in self._base["controllers"].items():
            yield {**kind, "controllers": {name: {}}}
            if "enabled" in controller:
                yield {**kind, "controllers": {name: {"enabled": True}}}

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return files with odd values."""
        return configurations(self._base)

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the refused fields, or the configuration."""
        if refused := _theirs(answer):
            return {"refused": {path: True for path, _ in refused}}
        return {"configuration": _settings(answer.output["configuration"], self._base)}

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Load the same file, and compare its effect."""
        theirs = _theirs(answer)
        try:
            loaded, _ = self._load(question)
        except ConfigurationInvalid as error:
            return refusals(theirs, [(each.path, each.problem) for each in error.findings])
        if theirs:
            return refusals(theirs, [])
        original = dict(answer.output["configuration"])
        if "targetClientConnection" not in question:
            original.pop("targetClientConnection", None)  # that of the source, on both sides
        ours = self._renamed(loaded.to_complete_json())
        return differences(_settings(original, self._base), _settings(ours, self._base))

    def _renamed(self, ours: JsonObject) -> JsonObject:
        controllers = {
            self._sections.get(name, name): section for name, section in ours["controllers"].items()
        }
        return {**ours, "controllers": controllers}


def _theirs(answer: Answer) -> list[tuple[str, str]]:
    if answer.outcome != "output":
        return [("", str(answer.value))]
    return [(each["field"], each["detail"]) for each in answer.output["refusals"]]


def _settings(value: JsonValue, base: JsonValue) -> JsonValue:
    """Return the settings that the base has, without empty ones and repeated names."""
    if isinstance(value, dict) and isinstance(base, dict):
        settings = {
            name: _settings(value[name], below) for name, below in base.items() if name in value
        }
        return {name: each for name, each in settings.items() if not _is_empty(each)}
    if isinstance(value, list):
        below = base[0] if isinstance(base, list) and base else None
        found = [_settings(each, below) for each in value]
        return found if any(isinstance(each, dict) for each in found) else [*dict.fromkeys(found)]
    return _seconds(value) if isinstance(value, str) else value


def _is_empty(value: JsonValue) -> bool:
    return value is None or value is False or value in ("", [], {})


def _seconds(text: str) -> JsonValue:
    # Go and Pergola write the same duration, but not always as the file does.
    try:
        return f"{parse_duration(text).total_seconds():g} s" if text else text
    except DurationError:
        return text


RESOURCE_MANAGER_CONFIG_SUBJECT: Final = Configurations(
    "resource-manager-config",
    "Configuration of the resource manager",
    RESOURCE_MANAGER,
    resource_manager_config.configuration_from,
    {"managedResources": "managedResource"},
)
"""The resource manager's."""
OPERATOR_CONFIG_SUBJECT: Final = Configurations(
    "operator-config",
    "Configuration of the operator",
    OPERATOR,
    operator_config.configuration_from,
    {},
)
"""The operator's."""
