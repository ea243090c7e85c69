package main

import (
	"time"

	druidcorev1alpha1 "github.com/gardener/etcd-druid/api/core/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/gardener/secretsrotation"
)

const (
	operation = "gardener.cloud/operation"
	renewal   = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
	purpose   = "resources.gardener.cloud/purpose"
)

// makeReady plays the controllers that a reconciliation waits for.
func makeReady(obj client.Object) {
	switch typed := obj.(type) {
	case *apiextensionsv1.CustomResourceDefinition:
		typed.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
			{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
		}
	case *appsv1.Deployment:
		replicas := ptr.Deref(typed.Spec.Replicas, 1)
		typed.Status = appsv1.DeploymentStatus{
			ObservedGeneration: typed.Generation,
			Replicas:           replicas,
			ReadyReplicas:      replicas,
			UpdatedReplicas:    replicas,
			AvailableReplicas:  replicas,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
	case *metav1.PartialObjectMetadata:
		if typed.Kind == "Deployment" {
			// A snapshot would be requested over HTTP, from a host that does not exist.
			metav1.SetMetaDataAnnotation(&typed.ObjectMeta, secretsrotation.AnnotationKeyEtcdSnapshotted, "true")
		}
	case *corev1.Service:
		if typed.Spec.Type == corev1.ServiceTypeLoadBalancer {
			typed.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.1"}}
		}
	case *corev1.Secret:
		if typed.Labels[purpose] == "token-requestor" {
			metav1.SetMetaDataAnnotation(&typed.ObjectMeta, renewal, time.Now().Add(time.Hour).Format(time.RFC3339))
		}
	case *resourcesv1alpha1.ManagedResource:
		typed.Status.ObservedGeneration = typed.Generation
		typed.Status.Conditions = []gardencorev1beta1.Condition{
			{Type: resourcesv1alpha1.ResourcesApplied, Status: gardencorev1beta1.ConditionTrue},
			{Type: resourcesv1alpha1.ResourcesHealthy, Status: gardencorev1beta1.ConditionTrue},
			{Type: resourcesv1alpha1.ResourcesProgressing, Status: gardencorev1beta1.ConditionFalse},
		}
	case *druidcorev1alpha1.Etcd:
		delete(typed.Annotations, operation)
		typed.Status.Ready = ptr.To(true)
		typed.Status.ObservedGeneration = ptr.To(typed.Generation)
		typed.Status.Conditions = []druidcorev1alpha1.Condition{
			{Type: druidcorev1alpha1.ConditionTypeAllMembersUpdated, Status: druidcorev1alpha1.ConditionTrue},
		}
	case *operatorv1alpha1.Extension:
		typed.Status.ObservedGeneration = typed.Generation
		typed.Status.Conditions = []gardencorev1beta1.Condition{
			{Type: operatorv1alpha1.ExtensionInstalled, Status: gardencorev1beta1.ConditionTrue},
			{Type: operatorv1alpha1.ExtensionRequiredRuntime, Status: gardencorev1beta1.ConditionTrue},
		}
	case extensionsv1alpha1.Object:
		annotations := typed.GetAnnotations()
		delete(annotations, operation)
		typed.SetAnnotations(annotations)
		status := typed.GetExtensionStatus()
		status.SetObservedGeneration(typed.GetGeneration())
		status.SetLastOperation(&gardencorev1beta1.LastOperation{
			State:          gardencorev1beta1.LastOperationStateSucceeded,
			LastUpdateTime: metav1.NewTime(time.Now().Add(time.Minute)),
		})
	}
}
