"""Plant known defects one after another, and check that the tests find each of them.

A suite that got faster must not have become blind. Each defect is one small edit of the source, as
a tired developer could make it. `python -m tools.planted` plants each in turn, runs the tests that
should find it until one fails, and reverts it; the first argument selects defects by a part of
their names. The exit code is the number of defects that nothing found.
"""

import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR|SUBFAILED\S*) (\S+)", flags=re.MULTILINE)


@dataclass(frozen=True)
class Defect:
    """An edit that breaks something.

    Attributes:
        name: the broken behaviour.
        path: a file, relative to the repository.
        before: the text to replace, which the file contains once.
        after: its replacement.
        tests: paths below `tests/`: a part of `make test`, so what they find, it finds.
        soak: the part of the soak that finds it if `make test` does not.
    """

    name: str
    path: str
    before: str
    after: str
    tests: tuple[str, ...]
    soak: str | None = None


DEFECTS: Final = (
    Defect(
        "a kibibyte has 1000 bytes",
        "src/pergola/kube/quantities.py",
        "Decimal(1024**power)",
        "Decimal(1000**power)",
        ("unit/kube/test_quantities.py",),
    ),
    Defect(
        "NotIn does not match labels without the key",
        "src/pergola/kube/selectors.py",
        'return (labels.get(key) in values) == (operator != "NotIn")',
        'return key in labels and (labels[key] in values) == (operator != "NotIn")',
        ("unit/kube/test_selectors.py",),
    ),
    Defect(
        "a change of a key that is being reconciled is lost",
        "src/pergola/runtime/controlling/queue.py",
        "            self._again.add(key)\n            return",
        "            return",
        ("unit/runtime/controlling",),
    ),
    Defect(
        "tasks run although one that they depend on failed",
        "src/pergola/flow/run.py",
        "_GOES_ON: Final = frozenset({Outcome.DONE, Outcome.SKIPPED})",
        "_GOES_ON: Final = frozenset({Outcome.DONE, Outcome.SKIPPED, Outcome.FAILED})",
        ("unit/flow",),
    ),
    Defect(
        "a credential that became mutable stays so",
        "src/pergola/secrets_manager/store.py",
        'if changed or secret.obj.get("immutable") is not True:',
        "if changed:",
        ("unit/secrets_manager", "integration/secrets_manager"),
    ),
    Defect(
        "a kubelet may request the certificate of another user",
        "src/pergola/resource_manager/controllers/csr_approver/rules.py",
        "    if request.common_name != request.username:\n"
        '        return Denied("common name in CSR does not match username")\n'
        "    if request.organizations != (NODE_GROUP,):",
        "    if request.organizations != (NODE_GROUP,):",
        ("unit/resource_manager/controllers/csr_approver",),
    ),
    Defect(
        "tokens are renewed after they have expired",
        "src/pergola/resource_manager/controllers/token_requestor/decide.py",
        "_RENEWAL_SHARE: Final = 0.8",
        "_RENEWAL_SHARE: Final = 1.8",
        ("unit/resource_manager/controllers/token_requestor",),
    ),
    Defect(
        "an object that was recreated in the meantime is deleted",
        "src/pergola/resource_manager/controllers/managed_resource/prune.py",
        "gvk, key, uid=uid_of(live), propagation=propagation",
        "gvk, key, propagation=propagation",
        (
            "unit/resource_manager/controllers/managed_resource",
            "integration/resource_manager/test_managed_resource_deletion.py",
        ),
    ),
    Defect(
        "a pod keeps its old zones beside the new ones",
        "src/pergola/resource_manager/webhooks/high_availability_config/affinity.py",
        'others = [expression for expression in expressions if expression.get("key") != ZONE_KEY]',
        "others = [*expressions]",
        ("unit/resource_manager/webhooks",),
    ),
    Defect(
        "the event that hands an object over reaches the provider",
        "src/pergola/externally_managed/predicate.py",
        "obj = event.new if event.new is not None else event.old",
        "obj = event.old if event.old is not None else event.new",
        ("unit/externally_managed",),
    ),
    Defect(
        "an interrupted reconciliation of an extension is not repeated",
        "src/pergola/extensions/lifecycle/reconcile.py",
        "        self._begun.add(key)\n",
        "",
        ("unit/extensions", "integration/extensions"),
    ),
    Defect(
        "an unanswered write to AWS is sent again",
        "src/pergola/cloud/aws/retry.py",
        "if error.may_have_happened and not operation.startswith(READS):",
        "if error.may_have_happened and not operation:",
        ("unit/cloud", "integration/providers/aws/test_aws_faults.py"),
        soak="aws",
    ),
    Defect(
        "what a killed run created in AWS is created again",
        "src/pergola/providers/aws/resources/adoption.py",
        "else tags.only_one(work, accepted, ours.tags(work))\n",
        "else None\n",
        ("unit/providers/aws", "integration/providers/aws/test_aws_kills.py"),
        soak="aws",
    ),
    Defect(
        "an API server encrypts with a key that its replicas do not know yet",
        "src/pergola/garden/components/api_server/roll_out.py",
        "        await clusters.wait_ready(render(landscape).annotated(), _LIMIT)\n",
        "",
        ("integration/operator/test_encryption_rewriting.py",),
        soak="gardens",
    ),
    Defect(
        "a rotation that a killed operator started starts again",
        "src/pergola/operator/rotation/phases.py",
        'if part == _OBSERVABILITY or _phase(current.get(part)) in ("", COMPLETED)',
        "",
        ("unit/operator",),
    ),
    Defect(
        "a condition of a Garden survives the check that it belongs to",
        "src/pergola/operator/care/conditions.py",
        'if c.get("type") not in gone]',
        "]",
        ("unit/operator/care", "integration/operator/care"),
    ),
    Defect(
        "a user of the dashboard sees kinds that they may not list",
        "src/pergola/dashboard/access/permissions.py",
        "if each not in rest or self._holds(each)}",
        "}",
        ("unit/dashboard", "integration/dashboard"),
    ),
    Defect(
        "a webhook changes the object that it reviews",
        "src/pergola/admission/draft.py",
        "        copy = value.copy()  # type: ignore[union-attr]\n",
        "        copy = value\n",
        ("unit/admission",),
    ),
    Defect(
        "a cache does not list again after 410 Gone",
        "src/pergola/runtime/caching/cache.py",
        '            except Gone:\n                self._position = ""\n',
        "            except Gone as error:\n                self._lost(error)\n",
        ("unit/runtime", "integration/runtime"),
    ),
    Defect(
        "the approver of certificates may not approve any",
        "charts/resource-manager/rbac/csr-approver.yaml",
        "verbs: [approve]",
        "verbs: [sign]",
        ("integration/resource_manager/test_csr_approver_clients.py",),
    ),
)


@contextlib.contextmanager
def planted(defect: Defect) -> Iterator[None]:
    """Plant a defect; revert it when the context ends.

    Raises:
        ValueError: the source does not contain the text once.
    """
    path = ROOT / defect.path
    source = path.read_text()
    if source.count(defect.before) != 1:
        raise ValueError(f"{defect.path} does not contain the text once: {defect.before!r}")
    try:
        path.write_text(source.replace(defect.before, defect.after))
        yield
    finally:
        path.write_text(source)


def found_by(arguments: list[str]) -> str | None:
    """Run tests until one fails, and return its id; None if all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments]
    answer = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    if answer.returncode == 0:
        return None
    failed = _FAILED.search(answer.stdout)
    return failed[1] if failed else f"exit code {answer.returncode}"


def main() -> int:
    """Plant the selected defects one after another; return how many were not found."""
    # The exception reverts the planted defect.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    missed = 0
    for defect in DEFECTS:
        if pattern not in defect.name:
            continue
        with planted(defect):
            runs = [[f"tests/{path}"] for path in defect.tests]
            runs += [["--soak", defect.soak]] if defect.soak else []
            by = next((found for run in runs if (found := found_by(run))), None)
        # A test that fails in any case, or fails at random, has found nothing.
        if by and "::" in by and (other := found_by([by.partition("[")[0]])):
            by = None
            print(f"without the defect, {other} fails, too", flush=True)
        print(f"{defect.name}: {by or 'NOT FOUND'}", flush=True)
        missed += by is None
    return missed


if __name__ == "__main__":
    sys.exit(main())
