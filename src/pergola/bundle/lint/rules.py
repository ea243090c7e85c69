"""The table of the house rules."""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from pergola.bundle.lint import containers, identity, permissions, references, workloads
from pergola.bundle.lint.manifests import Finding, Manifests


class Rule(NamedTuple):
    """A house rule.

    Attributes:
        id: the name of the rule in exceptions.
        check: finds violations.
    """

    id: str
    check: Callable[[Manifests], Iterable[Finding]]

    @property
    def reason(self) -> str:
        """The purpose of the rule, in one sentence."""
        return (self.check.__doc__ or "").strip()


RULES: Final = (
    Rule("valid-name", identity.valid_name),
    Rule("namespace", identity.known_namespace),
    Rule("duplicate-object", identity.unique_object),
    Rule("pinned-image", containers.pinned_image),
    Rule("memory-request", containers.memory_request),
    Rule("cpu-limit", containers.cpu_limit),
    Rule("privilege-escalation", containers.privilege_escalation),
    Rule("run-as-non-root", containers.run_as_non_root),
    Rule("seccomp-profile", containers.seccomp_profile),
    Rule("probes", containers.probes),
    Rule("priority-class", workloads.priority_class),
    Rule("disruption-budget", workloads.disruption_budget),
    Rule("host-root", workloads.host_root),
    Rule("selector-matches-template", workloads.selector_matches_template),
    Rule("selected-workload", workloads.selected_workload),
    Rule("cluster-admin", permissions.cluster_admin),
    Rule("wildcard-permission", permissions.wildcard_permission),
    Rule("existing-reference", references.existing_reference),
)
