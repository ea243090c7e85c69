"""Options and fixtures of the suite, and the table at the end of a run.

Loaded with `pytest -p pergola.testing.capi_contract.plugin`. Each option can be set in the ini file
as well: `--capi-kind` is `capi_kind` there.
"""

import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from pergola.api.kinds import NAMESPACE
from pergola.api.objects import Key
from pergola.externally_managed.contract import ContractError
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.kube.kubeconfig import load
from pergola.testing.capi_contract.kinds import Kinds
from pergola.testing.capi_contract.site import Site
from pergola.testing.capi_contract.subject import Subject, SubjectError, read_manifests, read_text

_HERE: Final = Path(__file__).parent
_SUBJECT: Final = pytest.StashKey[Subject]()
_KIND: Final = "contract kind"
_GROUP: Final = "contract group"
_CASE: Final = "contract case"
_OPTIONS: Final = {
    "managed-manifest": "file with an InfraCluster that the provider manages",
    "external-manifest": "file with an InfraCluster that has the annotation",
    "machine-manifest": "file with machine objects, with ${CLUSTER_NAME} and ${NAMESPACE} in it",
    "kind": "Kind.group of the InfraCluster, if the manifests have several kinds of *Cluster",
    "kubeconfig": "kubeconfig of an administrator (default: as kubectl)",
    "context": "context in the kubeconfig",
    "namespace": "existing namespace to work in (default: a fresh one for each case)",
    "settle-seconds": "time within which the provider reacts, if at all (default: 5)",
    "resync-seconds": "the provider's resync period (default: 30)",
    "patience-seconds": "how long to wait for expected writes (default: 60)",
}
_READY_BY_HAND: Final = "ready-by-hand"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Define the options, also for the ini file."""
    group = parser.getgroup("capi", "Cluster API: externally managed infrastructure")
    for name, text in _OPTIONS.items():
        group.addoption(f"--capi-{name}", default=None, metavar="VALUE", help=text)
        parser.addini(_ini(name), text, default="")
    text = "also expect that objects can be declared ready by hand"
    group.addoption(f"--capi-{_READY_BY_HAND}", action="store_true", default=None, help=text)
    parser.addini(_ini(_READY_BY_HAND), text, type="bool", default=False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Read the options if there are cases to run, and set the titles of the cases."""
    cases = [item for item in items if item.path.parent == _HERE]
    if not cases or config.option.collectonly:
        return
    subject = config.stash[_SUBJECT] = _read(config)
    for item in cases:
        assert isinstance(item, pytest.Function)
        item.user_properties += [
            (_KIND, str(subject.kind)),
            (_GROUP, _first_line(item.module)),
            (_CASE, _title(item)),
        ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table, including results of pytest-xdist's workers."""
    reports = [
        report
        for outcome in ("passed", "failed", "skipped", "error")
        for report in terminalreporter.stats.get(outcome, [])
        if isinstance(report, pytest.TestReport) and _CASE in dict(report.user_properties)
    ]
    if not reports:
        return
    kind = dict(reports[0].user_properties)[_KIND]
    terminalreporter.section(f"contract of externally managed infrastructure: {kind}")
    rows: dict[str, list[pytest.TestReport]] = {}
    for report in sorted(reports, key=lambda report: (report.location[0], report.location[1] or 0)):
        rows.setdefault(str(dict(report.user_properties)[_GROUP]), []).append(report)
    for name, of_group in rows.items():
        terminalreporter.line("")
        terminalreporter.line(name, bold=True)
        for report in of_group:
            case = dict(report.user_properties)[_CASE]
            word = report.outcome.upper() if report.failed else report.outcome
            terminalreporter.line(f"  {word:<8} {case}", **_markup(report))


@pytest.fixture(scope="session")
def capi_subject(pytestconfig: pytest.Config) -> Subject:
    """Return the provider under test."""
    return pytestconfig.stash[_SUBJECT]


@pytest_asyncio.fixture
async def capi_site(capi_subject: Subject) -> AsyncIterator[Site]:
    """Yield the site of one case."""
    async with Client.connect(load(capi_subject.kubeconfig, capi_subject.context)) as client:
        kinds = await _kinds(client, capi_subject)
        namespace = capi_subject.namespace or await _create_namespace(client)
        site = Site(client, capi_subject, kinds, namespace)
        yield site
        await site.clean()
        if not capi_subject.namespace:
            with suppress(KubeError):
                await client.delete(NAMESPACE, Key("", namespace))


async def _kinds(client: Client, subject: Subject) -> Kinds:
    try:
        kinds = await Kinds.read(client, subject.kind)
    except (ContractError, KubeError) as error:
        pytest.fail(str(error), pytrace=False)
    if not kinds.is_namespaced:
        pytest.fail(f"{subject.kind} must be namespaced", pytrace=False)
    return kinds


async def _create_namespace(client: Client) -> str:
    name = f"capi-contract-{secrets.token_hex(4)}"
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


def _read(config: pytest.Config) -> Subject:
    """Return the parsed options.

    Raises:
        UsageError: an option is missing or not valid.
    """
    try:
        managed, external = read_manifests(
            _required(config, "managed-manifest"),
            _required(config, "external-manifest"),
            _option(config, "kind"),
        )
        machines, kubeconfig = _option(config, "machine-manifest"), _option(config, "kubeconfig")
        return Subject(
            kind=managed.gvk.group_kind,
            managed=managed,
            external=external,
            machines=read_text(Path(machines)) if machines else None,
            kubeconfig=Path(kubeconfig) if kubeconfig else None,
            context=_option(config, "context") or None,
            namespace=_option(config, "namespace"),
            settle_seconds=_seconds(config, "settle-seconds", 5.0),
            resync_seconds=_seconds(config, "resync-seconds", 30.0),
            patience_seconds=_seconds(config, "patience-seconds", 60.0),
            ready_by_hand=bool(
                config.getoption(f"--capi-{_READY_BY_HAND}") or config.getini(_ini(_READY_BY_HAND))
            ),
        )
    except SubjectError as error:
        raise pytest.UsageError(str(error)) from None


def _required(config: pytest.Config, name: str) -> Path:
    value = _option(config, name)
    if not value:
        raise SubjectError(f"--capi-{name} is missing: {_OPTIONS[name]}")
    return Path(value)


def _seconds(config: pytest.Config, name: str, default: float) -> float:
    value = _option(config, name)
    try:
        return float(value) if value else default
    except ValueError:
        raise SubjectError(f"--capi-{name} is {value}, which is not a number of seconds") from None


def _option(config: pytest.Config, name: str) -> str:
    given = config.getoption(f"--capi-{name}")
    return str(given if given is not None else config.getini(_ini(name)))


def _ini(name: str) -> str:
    return f"capi_{name.replace('-', '_')}"


def _title(item: pytest.Function) -> str:
    """Return the first line of the case's docstring, and its parameter."""
    title = _first_line(item.obj)
    callspec = getattr(item, "callspec", None)
    return f"{title} ({callspec.id})" if callspec else title


def _first_line(documented: object) -> str:
    return (documented.__doc__ or "").strip().partition("\n")[0].removesuffix(".")


def _markup(report: pytest.TestReport) -> dict[str, bool]:
    return {"red" if report.failed else "yellow" if report.skipped else "green": True}
