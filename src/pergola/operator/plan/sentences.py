"""Descriptions of tasks other than the deployment of a component, one sentence each."""

from collections.abc import Mapping
from typing import Final

from pergola.garden.components import task_names
from pergola.operator.reconcile import gardener_info
from pergola.operator.reconcile.extension_resources import tasks
from pergola.operator.rotation import access_tokens, root_authorities
from pergola.operator.rotation.encryption import tasks as encryption
from pergola.operator.rotation.seeds import tasks as seeds

BEFORE: Final = "Preparing the Garden"
"""The name of the steps before the flows, which are not tasks."""
CREDENTIALS: Final = "Generating credentials"
AFTERWARDS: Final = "Deleting credentials that are no longer used"

SENTENCES: Final[Mapping[str, str]] = {
    BEFORE: "adds the finalizer of the operator, and labels the namespace garden",
    CREDENTIALS: "generates the authorities and keys that cannot be replaced once they are lost",
    AFTERWARDS: "deletes generated Secrets that the components no longer use",
    tasks.INSTALLED: "waits until the required extensions are installed and healthy",
    tasks.DNS: "deploys the DNSRecords, waits for them, and deletes stale ones",
    tasks.BUCKET: "deploys the BackupBucket, and waits until it is ready",
    task_names.BACKUP_ENTRY: "deploys the BackupEntry, and waits until it is ready",
    tasks.DEPLOY_BEFORE: "deploys the Extensions that the kube-apiserver needs",
    task_names.EXTENSIONS_BEFORE: "waits until these Extensions are ready",
    tasks.DEPLOY_AFTER: "deploys the Extensions that need the kube-apiserver",
    tasks.AFTER: "waits until these Extensions are ready",
    tasks.DELETE_STALE: "deletes Extensions that the Garden no longer has",
    tasks.STALE: "waits until these Extensions are gone",
    task_names.CONNECTION: "waits until the virtual cluster answers",
    task_names.REPLICATION: "provides the password of the Seeds' observability in both clusters",
    access_tokens.RENEW: "renews the tokens of components with the new key, and waits for them",
    seeds.RENEW_ACCESS: "requests new tokens for the extensions of all Seeds",
    seeds.ACCESS: "waits until all Seeds have them",
    seeds.RENEW_TOKENS: "requests new tokens of workload identities on all Seeds",
    seeds.TOKENS: "waits until all Seeds have them",
    seeds.RENEW_KUBECONFIGS: "requests new kubeconfigs for the gardenlets of all Seeds",
    seeds.KUBECONFIGS: "waits until all gardenlets have them",
    seeds.RENEW_SELF_HOSTED: "requests new kubeconfigs for the gardenlets of self-hosted Shoots",
    seeds.SELF_HOSTED_KUBECONFIGS: "waits until these gardenlets have them",
    seeds.PROPAGATED: "waits until the namespaces of all Seeds have the new password",
    seeds.RECONCILE_SEEDS: "requests that all Seeds are reconciled with the new password",
    root_authorities.PUBLISHED: "waits until all namespaces publish the new authority",
    encryption.LABEL: "rewrites the objects of encrypted resources",
    encryption.SNAPSHOT: "takes a snapshot of the main etcd",
    encryption.UNLABEL: "removes the label of rewritten objects, and records what is encrypted",
    gardener_info.TASK: "publishes the version of Gardener in the virtual cluster",
}
"""By task name."""
WAITS: Final = frozenset(
    {
        tasks.INSTALLED,
        task_names.EXTENSIONS_BEFORE,
        tasks.AFTER,
        tasks.STALE,
        root_authorities.PUBLISHED,
    }
)
"""The tasks that only wait, and write nothing."""
