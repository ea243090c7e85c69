"""A dictionary for compressing Kubernetes objects: the text that most of them share.

It is used in memory only, so it may change at any time. The most frequent text comes last.
"""

from typing import Final

COMMON: Final = b"".join(
    (
        b'"lastUpdateTime":"20","message":"Deployment has minimum availability."',
        b'"reason":"MinimumReplicasAvailable","Progressing","Available"',
        b'"readyReplicas":1,"updatedReplicas":1,"availableReplicas":1,"observedGeneration":1',
        b'"message":"All resources are applied.","reason":"ApplySucceeded"',
        b'"type":"ResourcesApplied","type":"ResourcesHealthy","type":"ResourcesProgressing"',
        b'"apiVersion":"resources.gardener.cloud/v1alpha1","kind":"ManagedResource"',
        b'"finalizers":["resources.gardener.cloud/gardener-resource-manager"]',
        b'"secretsDataChecksum":"","secretRefs":[{"name":"',
        b'"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","kind":"Role"',
        b'"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"',
        b'"subjects":[{"kind":"ServiceAccount","name":"","namespace":"kube-system"}]',
        b'"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}]',
        b'"apiVersion":"policy/v1","kind":"PodDisruptionBudget","maxUnavailable":1',
        b'"clusterIP":"10.","clusterIPs":["10."],"internalTrafficPolicy":"Cluster"',
        b'"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","sessionAffinity":"None"',
        b'"ports":[{"name":"","port":443,"protocol":"TCP","targetPort":443}],"type":"ClusterIP"',
        b'"apiVersion":"apps/v1","kind":"Deployment","kind":"Service","kind":"ConfigMap"',
        b'"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"},',
        b'"type":"RollingUpdate"},"progressDeadlineSeconds":600,"revisionHistoryLimit":',
        b'"containers":[{"image":"","imagePullPolicy":"IfNotPresent","name":"",',
        b'"resources":{"limits":{"memory":"Mi"},"requests":{"cpu":"10m","memory":"Mi"}},',
        b'"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],',
        b'"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":',
        b'"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}',
        b'"spec":{"replicas":1,"selector":{"matchLabels":{"app":""}},"template":{"metadata":',
        b'"status":{"conditions":[{"lastTransitionTime":"20","message":"","reason":"",',
        b'"status":"True","type":""}],"resources":[{"apiVersion":"v1","kind":"",',
        b'"resources.gardener.cloud/description":"DO NOT EDIT - This resource is managed by ',
        b"gardener-resource-manager.\\nAny modifications are discarded and the resource is ",
        b'returned to the original state.","resources.gardener.cloud/origin":"',
        b'"labels":{"app.kubernetes.io/name":"","app":"","resources.gardener.cloud/managed-by":',
        b'"gardener"},"generation":1,"resourceVersion":"","uid":"',
        b'{"apiVersion":"v1","kind":"","metadata":{"annotations":{},"creationTimestamp":"20",',
        b'"name":"","namespace":"',
    )
)
