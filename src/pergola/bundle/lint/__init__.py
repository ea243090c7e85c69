"""House rules for the manifests of every deployed component.

Each rule is one function, and `rules` is the table of all rules. A deviation needs an exception
with a reason.

    violations = lint(
        objects,
        allow={"run-as-non-root DaemonSet kube-system/calico-node": "configures the host"},
        external=["Secret kube-system/typha-tls"],
    )
"""

from pergola.bundle.lint.check import LintError, Violation, lint
from pergola.bundle.lint.rules import RULES, Rule

__all__ = ["RULES", "LintError", "Rule", "Violation", "lint"]
