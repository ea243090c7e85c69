"""Each rule in both directions: the component below follows all, and each change breaks one."""

from typing import Any

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, name_of
from pergola.bundle.lint import RULES, LintError, lint
from pergola.kube.yaml import parse_documents

COMPONENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: typha, namespace: kube-system, labels: {app: typha}}
spec:
  replicas: 2
  selector: {matchLabels: {app: typha}}
  template:
    metadata: {labels: {app: typha, version: "1"}}
    spec:
      priorityClassName: system-cluster-critical
      serviceAccountName: typha
      securityContext:
        runAsNonRoot: true
        seccompProfile: {type: RuntimeDefault}
      initContainers:
      - name: prepare
        image: registry.k8s.io/prepare:1.0
        securityContext: {allowPrivilegeEscalation: false}
        resources: {requests: {memory: 10Mi}}
      containers:
      - name: typha
        image: registry.k8s.io/typha:3.30
        envFrom:
        - configMapRef: {name: typha}
        env:
        - name: TOKEN
          valueFrom: {secretKeyRef: {name: typha, key: token}}
        readinessProbe: {httpGet: {path: /ready, port: 9098}}
        securityContext: {allowPrivilegeEscalation: false}
        resources:
          requests: {memory: 50Mi, cpu: 10m}
          limits: {memory: 100Mi}
      volumes:
      - name: config
        configMap: {name: typha}
      - name: tls
        secret: {secretName: typha}
      - name: all
        projected:
          sources:
          - configMap: {name: kube-root-ca.crt}
          - secret: {name: typha}
      - name: lib
        hostPath: {path: /var/lib/calico}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: node, namespace: kube-system}
spec:
  selector: {matchLabels: {app: node}}
  template:
    metadata: {labels: {app: node}}
    spec:
      priorityClassName: system-node-critical
      containers:
      - name: node
        image: registry.k8s.io/node@sha256:aaaa
        livenessProbe: {exec: {command: [live]}}
        securityContext: {privileged: true, runAsUser: 1000}
        resources: {requests: {memory: 50Mi}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: certificates, namespace: garden}
spec:
  jobTemplate:
    spec:
      template:
        spec:
          containers:
          - name: certificates
            image: registry.k8s.io/certificates:1.0
            securityContext:
              allowPrivilegeEscalation: false
              runAsNonRoot: true
              seccompProfile: {type: Localhost, localhostProfile: p}
            resources: {requests: {memory: 50Mi}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: typha, namespace: kube-system}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: typha}}}
---
apiVersion: v1
kind: Service
metadata: {name: typha, namespace: kube-system}
spec: {selector: {app: typha}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: typha, namespace: kube-system}
---
apiVersion: v1
kind: Secret
metadata: {name: typha, namespace: kube-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: typha, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "pergola:typha"}
rules:
- {apiGroups: [""], resources: [nodes], verbs: ["*"]}
- {apiGroups: [""], resources: ["*"], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "pergola:typha"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "pergola:typha"}
subjects:
- {kind: ServiceAccount, name: typha, namespace: kube-system}
- {kind: User, name: somebody}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: typha, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:auth-delegator"}
subjects:
- {kind: ServiceAccount, name: default, namespace: garden}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pools.calico.io}
spec: {group: calico.io, scope: Cluster, names: {kind: Pool}}
---
apiVersion: calico.io/v1
kind: Pool
metadata: {name: default}
---
apiVersion: example.org/v1
kind: Unknown
metadata: {name: anywhere}
"""
GONE: Any = object()
POD = "spec.template.spec"
CONTAINER = f"{POD}.containers[0]"
SECURITY = f"{CONTAINER}.securityContext"
VOLUMES = f"{POD}.volumes"
HIGHLY_AVAILABLE = {"high-availability-config.resources.gardener.cloud/type": "server"}


def component() -> dict[str, JsonObject]:
    """Return the objects by kind."""
    values = [document.value for document in parse_documents(COMPONENT)]
    return {str(value["kind"]): value for value in values if isinstance(value, dict)}


def edit(obj: Any, path: str, value: Any) -> None:
    """Set or remove the value at a path such as `spec.containers[0].image`."""
    *steps, last = path.replace("[", ".").replace("]", "").split(".")
    for step in steps:
        obj = obj[int(step)] if step.isdigit() else obj[step]
    if value is GONE:
        obj.pop(last)
    else:
        obj[last] = value


def violations(*edits: tuple[str, str, Any]) -> set[tuple[str, str, str]]:
    """Return rule, kind and path of all findings when objects of some kinds are edited."""
    objects = component()
    for kind, path, value in edits:
        edit(objects[kind], path, value)
    found = lint(list(objects.values()))
    return {(v.rule, v.object.partition(" ")[0], v.path) for v in found}


def test_a_component_that_follows_the_rules_has_no_violations() -> None:
    assert lint(list(component().values())) == []


# Rule, kind, edited path and its value; then the path of the finding, if it differs.
BREAKING: list[tuple[str, str, str, Any, str]] = [
    ("valid-name", "Service", "apiVersion", GONE, ""),
    ("valid-name", "ConfigMap", "metadata.name", "", ""),
    ("valid-name", "ConfigMap", "metadata.name", "A_b", ""),
    ("valid-name", "ConfigMap", "metadata.name", "a" * 254, ""),
    ("valid-name", "Service", "metadata.name", "a.b", ""),
    ("valid-name", "Service", "metadata.name", "a" * 64, ""),
    ("valid-name", "CronJob", "metadata.name", "a" * 53, ""),
    ("valid-name", "RoleBinding", "metadata.name", "a/b", ""),
    ("namespace", "RoleBinding", "metadata.namespace", GONE, ""),
    ("namespace", "ClusterRole", "metadata.namespace", "x", ""),
    ("namespace", "Pool", "metadata.namespace", "x", ""),
    ("pinned-image", "Deployment", f"{CONTAINER}.image", "registry.k8s.io/a:latest", ""),
    ("pinned-image", "Deployment", f"{CONTAINER}.image", "localhost:5000/a", ""),
    ("pinned-image", "Deployment", f"{CONTAINER}.image", GONE, ""),
    ("memory-request", "Deployment", f"{CONTAINER}.resources.requests.memory", GONE, ""),
    (
        "memory-request",
        "Deployment",
        f"{POD}.initContainers[0].resources",
        GONE,
        f"{POD}.initContainers[0].resources.requests.memory",
    ),
    ("cpu-limit", "Deployment", f"{CONTAINER}.resources.limits.cpu", "1", ""),
    ("privilege-escalation", "Deployment", f"{SECURITY}.allowPrivilegeEscalation", True, ""),
    ("privilege-escalation", "Deployment", f"{SECURITY}.allowPrivilegeEscalation", GONE, ""),
    ("run-as-non-root", "Deployment", f"{SECURITY}.runAsNonRoot", False, ""),
    ("run-as-non-root", "Deployment", f"{SECURITY}.runAsUser", 0, f"{SECURITY}.runAsNonRoot"),
    ("run-as-non-root", "DaemonSet", f"{SECURITY}.runAsUser", GONE, f"{SECURITY}.runAsNonRoot"),
    (
        "seccomp-profile",
        "Deployment",
        f"{SECURITY}.seccompProfile",
        {"type": "Unconfined"},
        f"{SECURITY}.seccompProfile.type",
    ),
    (
        "seccomp-profile",
        "DaemonSet",
        f"{SECURITY}.privileged",
        False,
        f"{SECURITY}.seccompProfile.type",
    ),
    ("probes", "Deployment", f"{CONTAINER}.readinessProbe", GONE, CONTAINER),
    (
        "probes",
        "Deployment",
        f"{POD}.initContainers[0].restartPolicy",
        "Always",
        f"{POD}.initContainers[0]",
    ),
    ("priority-class", "Deployment", f"{POD}.priorityClassName", GONE, ""),
    ("host-root", "Deployment", f"{VOLUMES}[3].hostPath.path", "/", ""),
    ("host-root", "Deployment", f"{VOLUMES}[3].hostPath.path", "//", ""),
    ("host-root", "Deployment", f"{VOLUMES}[3].hostPath.path", "/var/..", ""),
    ("selector-matches-template", "DaemonSet", "spec.selector", {"matchLabels": {"a": "b"}}, ""),
    ("selector-matches-template", "DaemonSet", "spec.selector", GONE, ""),
    ("selected-workload", "Service", "spec.selector", {"app": "other"}, ""),
    ("selected-workload", "Service", "metadata.namespace", "garden", "spec.selector"),
    ("selected-workload", "PodDisruptionBudget", "metadata.namespace", "garden", "spec.selector"),
    ("cluster-admin", "ClusterRoleBinding", "roleRef.name", "cluster-admin", ""),
    ("cluster-admin", "RoleBinding", "roleRef.name", "cluster-admin", ""),
    ("wildcard-permission", "ClusterRole", "rules[0].resources", ["*"], "rules[0]"),
    ("wildcard-permission", "ClusterRole", "rules[1].verbs", ["get", "*"], "rules[1]"),
    ("wildcard-permission", "ClusterRole", "rules[0].nonResourceURLs", ["*"], "rules[0]"),
    ("existing-reference", "Deployment", f"{POD}.serviceAccountName", "x", ""),
    ("existing-reference", "Deployment", f"{CONTAINER}.envFrom[0].configMapRef.name", "x", ""),
    (
        "existing-reference",
        "Deployment",
        f"{CONTAINER}.env[0].valueFrom.secretKeyRef.name",
        "x",
        "",
    ),
    ("existing-reference", "Deployment", f"{VOLUMES}[0].configMap.name", "x", ""),
    ("existing-reference", "Deployment", f"{VOLUMES}[1].secret.secretName", "x", ""),
    ("existing-reference", "Deployment", f"{VOLUMES}[2].projected.sources[1].secret.name", "x", ""),
    ("existing-reference", "ClusterRoleBinding", "roleRef.name", "x", ""),
    ("existing-reference", "ClusterRoleBinding", "subjects[0].namespace", "garden", "subjects[0]"),
]


@pytest.mark.parametrize(("rule", "kind", "path", "value", "place"), BREAKING)
def test_each_violation_is_found_with_its_path(
    rule: str, kind: str, path: str, value: Any, place: str
) -> None:
    assert (rule, kind, place or path) in violations((kind, path, value))


def test_every_rule_has_a_test_that_violates_it() -> None:
    elsewhere = {"duplicate-object", "disruption-budget"}
    assert {rule.id for rule in RULES} == {row[0] for row in BREAKING} | elsewhere


def test_duplicate_objects_are_found_across_versions() -> None:
    objects = component()
    again = {**objects["PodDisruptionBudget"], "apiVersion": "policy/v1beta1"}
    (violation,) = lint([*objects.values(), again])
    assert violation[:3] == ("duplicate-object", "PodDisruptionBudget kube-system/typha", "")


@pytest.mark.parametrize(
    "edits",
    [
        [],
        [("Deployment", "spec.replicas", 1), ("Deployment", "metadata.labels", HIGHLY_AVAILABLE)],
    ],
)
def test_several_replicas_need_a_disruption_budget(edits: list[tuple[str, str, Any]]) -> None:
    elsewhere = ("PodDisruptionBudget", "metadata.namespace", "garden")
    found = violations(elsewhere, *edits)
    assert ("disruption-budget", "Deployment", "spec.replicas") in found


def test_a_single_replica_needs_no_disruption_budget() -> None:
    objects = component()
    objects.pop("PodDisruptionBudget")
    objects["Deployment"]["spec"]["replicas"] = 1
    assert lint(list(objects.values())) == []


def test_the_scope_of_custom_kinds_is_read_from_their_definition() -> None:
    found = violations(("CustomResourceDefinition", "spec.scope", "Namespaced"))
    assert found == {("namespace", "Pool", "metadata.namespace")}


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Deployment", "metadata.labels", {"x": "y"}),
        ("Secret", "metadata.labels", HIGHLY_AVAILABLE),
        ("CustomResourceDefinition", "metadata.name", "a" * 70 + ".calico.io"),
        (
            "DaemonSet",
            SECURITY,
            {
                "capabilities": {"add": ["SYS_ADMIN"]},
                "runAsUser": 1,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        ),
        (
            "Deployment",
            f"{CONTAINER}.env[0].valueFrom",
            {"configMapKeyRef": {"name": "other", "optional": True}},
        ),
        ("Service", "spec", {"type": "ExternalName", "selector": {"a": "b"}}),
        ("Service", "spec.selector", GONE),
        ("Deployment", f"{VOLUMES}[3].hostPath.path", "/var"),
    ],
)
def test_valid_changes_have_no_findings(kind: str, path: str, value: Any) -> None:
    assert violations((kind, path, value)) == set()


def test_a_violation_reads_as_a_sentence() -> None:
    changed = component()
    edit(changed["Deployment"], f"{POD}.priorityClassName", GONE)
    (violation,) = lint(list(changed.values()))
    assert str(violation) == (
        "Deployment kube-system/typha spec.template.spec.priorityClassName: pods in kube-system"
        " need a priority class, such as system-cluster-critical (priority-class)"
    )


@pytest.mark.parametrize(
    "exception",
    [
        "priority-class Deployment kube-system/typha",
        "priority-class Deployment kube-system/*",
        "priority-class *",
    ],
)
def test_an_exception_with_a_reason_is_allowed(exception: str) -> None:
    changed = component()
    edit(changed["Deployment"], f"{POD}.priorityClassName", GONE)
    assert lint(list(changed.values()), allow={exception: "runs for tests only"}) == []


@pytest.mark.parametrize(
    "exception",
    ["priority-class Deployment garden/typha", "probes Deployment kube-system/typha"],
)
def test_an_exception_applies_to_one_rule_and_object(exception: str) -> None:
    changed = component()
    edit(changed["Deployment"], f"{POD}.priorityClassName", GONE)
    assert len(lint(list(changed.values()), allow={exception: "runs for tests only"})) == 1


@pytest.mark.parametrize(
    ("exception", "reason", "problem"),
    [
        ("priorities Deployment a/b", "why", "names no rule; there are cluster-admin, cpu-limit"),
        ("probes", "why", "names no object"),
        ("probes Deployment a/b", " ", "needs a reason"),
    ],
)
def test_an_incomplete_exception_is_refused(exception: str, reason: str, problem: str) -> None:
    with pytest.raises(LintError, match=problem):
        lint([], allow={exception: reason})


@pytest.mark.parametrize("external", ["Secret kube-system/typha", "Secret kube-system/ty*"])
def test_external_objects_need_no_manifest(external: str) -> None:
    objects = [o for o in component().values() if o["kind"] != "Secret"]
    assert {v.rule for v in lint(objects)} == {"existing-reference"}
    assert lint(objects, external=[external]) == []


def test_references_are_resolved_in_the_namespace_of_the_pods() -> None:
    changed = component()
    changed["Secret"]["metadata"]["namespace"] = "garden"
    assert {v.rule for v in lint(list(changed.values()))} == {"existing-reference"}


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"apiVersion": 1, "kind": [], "metadata": "x"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": [], "selector": 1}},
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "spec": {
                "selector": {"matchExpressions": [{"operator": "?"}]},
                "template": {"spec": {"containers": [{"image": 1, "env": 1}, 2], "volumes": {}}},
            },
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "rules": [{"verbs": "*"}, 1],
        },
    ],
)
def test_malformed_objects_are_reported_as_findings(broken: JsonObject) -> None:
    assert "valid-name" in {v.rule for v in lint([broken])}


def test_each_rule_has_a_reason() -> None:
    assert all(rule.reason.endswith(".") for rule in RULES)
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_linting_does_not_modify_objects() -> None:
    objects = list(component().values())
    lint(objects)
    assert objects == list(component().values())
    assert [name_of(o) for o in objects if GroupVersionKind.of(o).kind == "Pool"] == ["default"]
