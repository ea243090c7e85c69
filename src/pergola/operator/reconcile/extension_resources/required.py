"""The extensions that a Garden requires (spec 20 §11)."""

from collections.abc import Iterator, Mapping

from pergola.extension_api.kinds import BACKUP_BUCKET, BACKUP_ENTRY, DNS_RECORD, EXTENSION
from pergola.garden.components.etcds.backups import bucket_absent, entry_absent
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.served import Need, auto_enabled, extensions_for


def none_required(landscape: Landscape) -> str | None:
    """Return why the Garden requires no extension, or None if it requires one."""
    return None if required(landscape) else "the Garden uses no extension"


def required(landscape: Landscape) -> Mapping[Need, tuple[str, ...]]:
    """Return the requirements of a Garden, each with the names of the Extensions that serve it."""
    needs = sorted({*_for_extensions(landscape), *_for_dns(landscape), *_for_backup(landscape)})
    return {need: extensions_for(need, landscape.extensions) for need in needs}


def _for_extensions(landscape: Landscape) -> Iterator[Need]:
    for extension in landscape.garden.spec.extensions:
        yield Need(EXTENSION.kind, extension.type)
    for extension_type in auto_enabled(landscape.extensions):
        yield Need(EXTENSION.kind, extension_type)


def _for_dns(landscape: Landscape) -> Iterator[Need]:
    dns = landscape.garden.spec.dns
    for provider in dns.providers if dns else ():
        yield Need(DNS_RECORD.kind, provider.type)


def _for_backup(landscape: Landscape) -> Iterator[Need]:
    backup = landscape.virtual.etcd.main.backup
    if backup is None or bucket_absent(landscape):
        return
    yield Need(BACKUP_BUCKET.kind, backup.provider)
    if not entry_absent(landscape):
        yield Need(BACKUP_ENTRY.kind, backup.provider)
