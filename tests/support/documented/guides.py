"""The shell blocks of the documentation as guides: what a reader types, and what happens then."""

from typing import Final

from tests.support.documented.pages import ROOT, output
from tests.support.documented.reader import Guide, Shows, Until

TYPED: Final = ("../README.md", "../examples/", "how-to/", "tutorials/")
"""Pages whose shell blocks are typed as they are written."""

SANDBOX: Final = "pergola sandbox start && export KUBECONFIG=$(pergola sandbox kubeconfig)"
CERTIFICATE: Final = """\
python - <<'EOF'
from datetime import UTC, datetime, timedelta
from pathlib import Path
from pergola.pki import Authority
pair = Authority.create("ca", datetime.now(UTC), timedelta(days=1)).pair
Path("tls.crt").write_bytes(pair.public)
Path("tls.key").write_bytes(pair.private)
EOF"""
EXAMPLES: Final = "../examples"
SERVED: Final = f"{SANDBOX}\npergola crds --apply"
MANAGER: Final = (
    # Its output must not be mistaken for that of the next command.
    "pergola crds --apply\n"
    "pergola resource-manager --config examples/resource-manager.yaml > manager.log 2>&1 &"
)
ACCOUNT: Final = (
    f"python {ROOT / 'tests/support/documented/aws_account.py'} &\n"
    "until [ -s account.env ]; do sleep 0.1; done; . ./account.env; rm account.env"
)
INFRASTRUCTURE: Final = """\
pergola crds --apply
pergola extension run aws &
sed 's/shoot--demo--created/shoot--p--web/; s/name: created/name: web/' \\
  examples/aws/pattern-1-created.yaml | kubectl apply -f -
kubectl create secret generic cloudprovider -n shoot--p--web \\
  --from-literal=accessKeyID=test --from-literal=secretAccessKey=test
kubectl annotate infrastructure web -n shoot--p--web gardener.cloud/operation=reconcile
kubectl wait infrastructure web -n shoot--p--web --timeout=2m \\
  --for=jsonpath='{.status.lastOperation.state}'=Succeeded"""
PACKAGE: Final = """\
site=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
info=$site/gardenet-0.1.dist-info
mkdir $info && cp examples/network/gardenet/gardenet.py $site
printf 'Metadata-Version: 2.1\\nName: gardenet\\nVersion: 0.1\\n' > $info/METADATA
printf '[pergola.extensions]\\ngardenet = gardenet:Gardenet\\n' > $info/entry_points.txt"""
"""Install the package of the tutorial."""

GARDEN_KINDS: Final = """\
python - <<'EOF' | kubectl apply -f -
from pergola.api import GroupVersionKind
from pergola.kube.yaml import dump
from pergola.testing.crds import definition
for kind in ("ControllerDeployment", "ControllerRegistration"):
    gvk = GroupVersionKind("core.gardener.cloud", "v1" if kind.endswith("t") else "v1beta1", kind)
    print("---", dump(definition(gvk, scope="Cluster")), sep="\\n")
EOF"""
"""Serve the kinds of Gardener's API server that register extensions."""

CONTEXT_SEED: Final = """\
cp $KUBECONFIG seed.yaml && export KUBECONFIG=$PWD/seed.yaml
kubectl config rename-context $(kubectl config current-context) seed"""

GUIDE: Final = "how-to/operating-a-garden.md"
ON_MACHINE: Final = "how-to/garden-local-development.md"
TUTORIAL: Final = "tutorials/network-extension.md"
LOST: Final = "how-to/lost-secret.md"

GUIDES: Final = {
    "first": Guide(
        ("../README.md: Your first ManagedResource",),
        {"kubectl get managedresources --watch": Until(r"hello\s+\S*\s+True\s+True")},
        # What the page says of an edit; and the process ends with 0.
        after="""\
kubectl patch configmap greeting -p '{"data": {"text": "edited"}}'
kubectl wait configmap greeting --for=jsonpath='{.data.text}'=hello --timeout=1m
kubectl delete -f examples/first.yaml
kill %1 && wait %1""",
    ),
    "gitops": Guide(
        ("how-to/gitops.md",),
        before=f"{SANDBOX}\n{MANAGER}\nchmod -R u+w examples/gitops",
        after="kubectl delete -k examples/gitops/managed-resource",
    ),
    "own kind": Guide(
        ("tutorials/own-kind.md",),
        {
            "kubectl get configmap first": Shows("Hello, world!"),
            "kubectl get configmap guest-book -o jsonpath='{.data.first}'": Shows("world"),
            "pytest": Shows("2 passed"),
            "kubectl create configmap unowned": Shows("needs the key owner", 1),
            "cd warden": Shows("2 passed"),
        },
        after="kubectl delete crd greetings.example.org",
    ),
    "existing": Guide(
        (
            "../README.md: On an existing cluster",
            "how-to/operating-pergola.md: Install",
            "how-to/operating-pergola.md: Ask for help",
        ),
        {
            "pergola version": Shows("resource-manager +garden"),
            "pergola support-bundle": Shows("is written"),
        },
        before=f"{SANDBOX}\nmkdir -p ~/.kube && cp $KUBECONFIG ~/.kube/config",
        after="helm uninstall gardener-resource-manager --namespace garden",
    ),
    "extensions": Guide(
        ("../README.md: Extensions",),
        {
            "pergola network reconcile": Shows("Network shoot--demo--gardenet/my-network is ready"),
            "pergola extension register": Shows("kind: ControllerDeployment"),
            "pergola extension admission": Until("endpoints are served"),
        },
        before=f"{SANDBOX}\n{MANAGER}\ncp examples/network/gardenet/*.* .\n"
        "kubectl apply -f cluster.yaml",
        after="pergola network delete -f network.yaml",
    ),
    "tutorial": Guide(
        (
            "tutorials/network-extension.md: 4. Run it",
            "tutorials/network-extension.md: 6. Register it",
        ),
        {
            "pergola extension run": Until("controllers start"),
            "pergola extension register gardenet --image": Shows("controllerregistration"),
            "pergola extension register gardenet --ref": Shows("networking-gardenet created"),
        },
        before=f"{SANDBOX}\n{MANAGER}\npergola crds operator --apply\n{PACKAGE}\n{GARDEN_KINDS}",
        after="kubectl delete crd {gardens,extensions}.operator.gardener.cloud",
    ),
    "aws": Guide(
        (
            "../README.md: Infrastructure in AWS",
            "how-to/aws-bring-your-own-network.md",
            f"{EXAMPLES}/aws/README.md: With an account",
        ),
        {
            "python examples/aws/demo.py": Shows("all of it is kept"),
            "pergola aws validate": (Shows("is valid"), Shows("is valid"), Shows("is valid")),
            "pergola aws plan -f examples/aws/pattern-2-byo.yaml --mermaid": Shows("flowchart", 2),
            "pergola aws show -f": Shows("subnet-"),
            "pergola aws plan": (Shows("subnet", 2), Shows("subnet", 2)),
            "pergola aws cloud-config": Shows("kubernetes.io/cluster/shoot--p--web|SubnetID"),
            "pergola aws iam-policy": Shows("ec2:DescribeSubnets"),
        },
        before=f"{SANDBOX}\n{ACCOUNT}\n{INFRASTRUCTURE}",
        after="grep -q '<svg' web.svg",
    ),
    "aws process": Guide(
        (f"{EXAMPLES}/aws/README.md: Infrastructure in AWS", "how-to/aws-dns-and-backups.md"),
        {
            "pergola extension run": (Until("controllers start"), Until("controllers start")),
            "pergola aws iam-policy --mode dns": Shows("Z0123456789ABC"),
            "pergola aws iam-policy --mode backup": Shows("garden-"),
        },
        before=f"{SANDBOX}\n{MANAGER}",
    ),
    "dashboard": Guide(
        (
            "how-to/dashboard.md: The dashboard",
            "how-to/dashboard.md: In a cluster",
            "how-to/dashboard.md: Sign in",
        ),
        {
            "pergola dashboard --open": Until("opened http"),
            "pergola dashboard --context": Until("http://(127.0.0.1|localhost):8600"),
            "pergola dashboard": Until("http://"),
            "kubectl --namespace people create token": Shows(r"^ey"),
        },
        before=f"{SERVED}\nexport BROWSER='echo opened %s'\n{CONTEXT_SEED}\n"
        f"{CERTIFICATE}\n"
        "for name in pergola-system people shoot--foo--bar; do\nkubectl create ns $name\ndone",
        after="helm uninstall dashboard --namespace pergola-system",
    ),
    "migrate": Guide(
        ("how-to/migrate-resource-manager.md",),
        before=f"{SANDBOX}\nhelm install gardener-resource-manager charts/resource-manager "
        "--namespace garden --create-namespace --set image.repository=registry.example/pergola",
        after="grep -q ResourceManagerConfiguration config.yaml\n"
        "helm uninstall gardener-resource-manager --namespace garden",
    ),
    "tracing": Guide(
        ("how-to/tracing.md",),
        {"OTEL_EXPORTER": Until("controllers start")},
        before=f"{SERVED}\ncp examples/resource-manager.yaml config.yaml",
    ),
    "sharding": Guide(("how-to/sharding.md: Switch it on",), before=SERVED),
    "operator": Guide(
        (
            f"{GUIDE}: Install",
            "how-to/extensions-of-a-garden.md: Install",
            f"{GUIDE}: Upgrade",
            f"{GUIDE}: Remove the operator",
        ),
        before=SANDBOX,
        after="kubectl delete -f examples/extensions/pergola-aws.yaml",
    ),
    "externally managed": Guide(
        (f"{EXAMPLES}/externally-managed/README.md",),
        {
            "python": Shows("Ready"),
            "pergola infra-manager": Until("controllers start"),
        },
        before=f"{SANDBOX}\nsed 's/democluster/awscluster/; s/DemoCluster/AWSCluster/' "
        "examples/externally-managed/kinds.yaml | kubectl apply -f -",
    ),
    "controller": Guide(
        (f"{EXAMPLES}/controller/README.md",), {"kubectl get configmap demo": Shows("^2")}
    ),
    "csr": Guide(
        (f"{EXAMPLES}/csr-approver/README.md",),
        {
            "kubectl get csr --watch": Until(r"demo-wrong[^\n]*Denied"),
            "kubectl get csr demo-wrong": Shows("addresses in CSR do not match"),
            "kubectl events": Shows("demo-wrong"),
        },
        after="kubectl delete -f examples/csr-approver/node.yaml",
    ),
    "explain": Guide(
        (f"{EXAMPLES}/explain/README.md", f"{EXAMPLES}/high-availability/README.md"),
        {
            "pergola explain -f examples/explain": Shows("projected-token-mount.*seccomp-profile"),
            "pergola explain -f examples/high-availability": Shows("replicas.*tolerations"),
        },
    ),
    "istio": Guide(
        (f"{EXAMPLES}/istio-cluster-configuration/README.md",),
        {"kubectl get envoyfilters": Shows(r"outbound\|443\|.*outbound\|8132\|")},
        after="kubectl delete -f examples/istio-cluster-configuration/1-crds.yaml",
    ),
    "network-policy": Guide(
        (f"{EXAMPLES}/network-policy/README.md",),
        {
            "kubectl get networkpolicies": Shows(r"^NAMESPACE[^\n]*(\n[^\n]*orders[^\n]*){9}\n$"),
            "kubectl -n demo-office get": Shows("orders"),
            "kubectl -n demo-shop events": Shows("namespace-selectors"),
        },
        after="kubectl delete -f examples/network-policy/manifests.yaml",
    ),
    "network-webhook": Guide(
        (f"{EXAMPLES}/network-webhook/README.md",),
        {"kubectl -n shoot--example--azure get": Shows('"backend":"none"')},
        after="kubectl delete -f examples/network-webhook/manifests.yaml",
    ),
    "gardenet": Guide(
        (
            f"{EXAMPLES}/network/README.md: Networks of Shoots",
            f"{EXAMPLES}/network/gardenet/README.md",
        ),
        {
            "python examples/network/demo.py": Shows("calico"),
            "pergola network reconcile": Shows("Network shoot--demo--gardenet/my-network is ready"),
        },
    ),
    "delay": Guide(
        (f"{EXAMPLES}/node-agent-reconciliation-delay/README.md",),
        {
            "kubectl get nodes": Shows(
                output(f"{EXAMPLES}/node-agent-reconciliation-delay/README.md")
            )
        },
        after="kubectl delete -f examples/node-agent-reconciliation-delay/nodes.yaml",
    ),
    "critical": Guide(
        (f"{EXAMPLES}/node-critical-components/README.md",),
        {
            "kubectl get events": Shows("Unready required CSI drivers for Node: .csi.driver"),
            "kubectl get node": Shows(r"^(?!.*critical-components)"),
        },
        after="kubectl delete -f examples/node-critical-components/1-node.yaml",
    ),
    "invalidator": Guide(
        (f"{EXAMPLES}/token-invalidator/README.md",),
        {"kubectl -n demo-tokens get secrets": Shows(r"robot-token[^\n]*true")},
    ),
    "requestor": Guide(
        (f"{EXAMPLES}/token-requestor/README.md",),
        {"pergola tokens": Shows("access-mistaken.*access-robot")},
    ),
    "webhooks": Guide(
        (f"{EXAMPLES}/webhooks/README.md",),
        {
            "pergola webhooks check": (
                Shows("all webhooks are registered correctly"),
                Shows("cannot be reached", 1),
            ),
            "kubectl delete crd managedresources": Shows("denied", 1),
            "kubectl -n demo-webhooks get pod": Shows("RuntimeDefault"),
            "kubectl -n demo-webhooks delete pods": Shows("connection refused", 1),
            "pergola webhooks render": Shows("kind: MutatingWebhookConfiguration"),
        },
        before=f"{CERTIFICATE}\nmv tls.crt ca.crt",
    ),
}


SLOW: Final = frozenset({"aws", "aws process", "gardenet"})
"""They contain demonstrations, which other tests run with each change."""

GARDEN: Final = Guide(
    (
        "../README.md: A Garden",
        "how-to/extensions-of-a-garden.md: Watch",
        f"{GUIDE}: Rotating credentials",
        f"{GUIDE}: Seeds",
        f"{GUIDE}: Export the credentials",
        f"{LOST}: See what is lost",
        f"{LOST}: Restore it from an export",
        f"{LOST}: Give it up",
        "how-to/operating-pergola.md: When the operator's webhooks block a repair",
        f"{ON_MACHINE}: In kind",
        "how-to/extensions-of-a-garden.md: Remove",
        f"{ON_MACHINE}: Wait, use and remove it",
        f"{LOST}: Begin with an empty etcd",
    ),
    {
        "pergola garden check": Shows("valid"),
        # The virtual cluster has no DNS record, so some tasks cannot be foreseen.
        "pergola garden plan": Shows("change nothing", 2),
        "pergola garden compare": Shows("are equal", 2),
        "pergola garden why gardener-apiserver": Shows("gardener-apiserver"),
        # README has started it.
        "pergola garden rotate --start         # all kinds": Shows("cannot start rotation", 1),
        "kubectl get extop pergola-aws -o": Shows("Installed="),
        "pergola operator": Until("waiting to be leader"),
    },
    before="""\
cp examples/garden/garden.yaml garden.yaml
echo 'correct horse battery' > passphrase
cp $KUBECONFIG garden-kubeconfig.yaml && export KUBECONFIG=$PWD/garden-kubeconfig.yaml
kubectl config rename-context $(kubectl config current-context) original-context
sed 's/registry.example/127.0.0.1:1/' examples/extensions/pergola-aws.yaml | kubectl apply -f -
cat > operator.yaml <<'EOF'
apiVersion: operator.config.gardener.cloud/v1alpha1
kind: OperatorConfiguration
server: {healthProbes: {port: 0}, metrics: {port: 0}, webhooks: {port: 0}}
EOF""",
)

FIRST_STEPS: Final = Guide(
    (
        "tutorials/first-steps.md: ManagedResources become objects, and stay that way",
        f"{EXAMPLES}/bundle/README.md",
    ),
    {
        "kubectl -n shop get configmaps": Shows("web-features"),
        "python examples/bundle/produce.py": Shows(""),
    },
)
LOOK_AROUND: Final = Guide(
    ("tutorials/first-steps.md: Look around",), {"pergola why": Shows("gardener-scheduler")}
)
LANDSCAPE: Final = Guide(
    (
        "tutorials/landscape.md: Look at the three clusters",
        "tutorials/landscape.md: Break something",
        "tutorials/landscape.md: Rotate all credentials",
        "tutorials/landscape.md: Delete the Shoot",
    ),
    {
        "kubectl --kubeconfig $GARDEN get seeds": Shows("first"),
        "kubectl --kubeconfig $SEED get managedresources": Shows("shoot-core-gardeneraccess"),
        "kubectl --kubeconfig $SHOOT get configmaps": Shows("mine"),
        "kubectl --kubeconfig $SHOOT get clusterrolebinding": Shows("system:gardener"),
    },
    before="""\
folder=$(dirname $KUBECONFIG)
export GARDEN=$folder/virtual.kubeconfig SHOOT=$folder/shoot.kubeconfig
export SEED=${folder%garden}seed/kubeconfig""",
)
UP: Final = (
    "pergola up",
    "pergola up --only garden",
    "pergola up --only landscape",
    "pergola up --only landscape --aws",
)
"""Commands that run in a terminal of their own, with the guides above in another one."""

REPLACEMENT: Final = "how-to/replace-the-resource-manager-of-a-seed.md"
MIGRATION: Final = "how-to/migrate-extensions.md"
TYPED_ALONE: Final = {
    REPLACEMENT: ("Switch over", "Go back"),
    MIGRATION: (
        "On AWS, take the kinds from the original first",
        *("Take control planes over", "Take machines over", "Go back"),
    ),
    GUIDE: (
        *("Create the Garden", "Use it", "Watch", "Export the credentials"),
        *("Import the credentials", "Start the Garden", "Move", "Change the Garden"),
        *("Remove", "Wait for the end"),
    ),
}
"""Headings of blocks that a test types one by one, and looks at the cluster between.

They are `test_garden_life`, `test_replacing_a_resource_manager` and
`test_replacing_the_original_on_aws`.
"""

NOT_RUN: Final = {
    "make up": "needs a checkout; CI runs `make test`, and tests run `pergola up`",
    "pipx install": "installs for the user; tests install the wheel with uv",
    "pip install pergola pytest": "tests the reader's own provider",
    "pergola sandbox build --all": "names a test, which the soak runs",
    "kind create cluster": "needs a container engine",
    "make release": "needs a checkout, and the registry is the reader's",
    "kubectl --namespace pergola-system port-forward": "the pods of the sandbox are simulated",
    "kubectl --kubeconfig virtual.yaml get namespaces": "needs an entry in /etc/hosts",
    "sudo .venv/bin/pergola sandbox start": "tests on a real node start it without sudo",
    "for name in web caller": "needs a real node, whose tests apply the policy",
}
"""Blocks by their beginnings, and why."""
