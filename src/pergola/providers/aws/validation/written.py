"""Configs as written: the new one is read strictly, the old one leniently (spec 30 §1.4)."""

from collections.abc import Iterator

from pergola.api.field_errors import Cause, required
from pergola.api.objects import JsonValue
from pergola.api.schema.read import Malformed
from pergola.api.schema.validate import REQUIRED
from pergola.extensions.provider_config import read_leniently, read_strict
from pergola.providers.aws.config import INFRASTRUCTURE_CONFIG, InfrastructureConfig
from pergola.providers.aws.validation.config import check_config
from pergola.providers.aws.validation.facts import ShootFacts
from pergola.providers.aws.validation.update import check_update


def check_written(
    value: JsonValue, facts: ShootFacts, old: JsonValue = None, *, path: str
) -> Iterator[Cause]:
    """Check a config as it is written, and the change from the old one.

    Unknown fields do not prevent the known ones from being checked.

    Args:
        old: the previous config; None if there was none.
        path: the path of the config, for findings.
    """
    try:
        config = read_strict(
            InfrastructureConfig, value, INFRASTRUCTURE_CONFIG, path=path, needs_type=True
        )
    except Malformed as error:
        yield from malformed(error)
        known = _read(value)
        if known is None:
            return
        config = known
    before = _read(old)
    for cause in check_config(config, facts, before):
        yield cause.under(path)
    if before is not None:
        for cause in check_update(config, before):
            yield cause.under(path)


def malformed(error: Malformed) -> Iterator[Cause]:
    """Yield the reasons why a config could not be read, as findings."""
    for finding in error.findings:
        if finding.problem == REQUIRED:
            yield required(finding.path)
        else:
            yield Cause("FieldValueInvalid", f"Invalid value: {finding.problem}", finding.path)


def _read(value: JsonValue) -> InfrastructureConfig | None:
    """Return the known fields; None if there is no config, or it has the wrong type."""
    if value is None:
        return None
    try:
        return read_leniently(InfrastructureConfig, value, INFRASTRUCTURE_CONFIG)
    except Malformed:
        return None
