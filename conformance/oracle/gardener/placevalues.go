package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
	"github.com/gardener/gardener/pkg/component/gardener/resourcemanager"
)

// place is one of the places in which the original deploys a resource manager.
type place struct {
	namespace  string
	identity   string // of the secrets manager
	isRuntime  bool   // responsible for the cluster in which it runs, by the constructor for that
	hasTarget  bool   // it serves another cluster
	bootstraps bool   // the node on which it runs
	values     func() resourcemanager.Values
}

// shootNamespace is the control plane's namespace of a Shoot.
const shootNamespace = "shoot--e2e--shoot"

// places are all of them, with the values that gardenlet, gardener-operator and gardenadm give.
var places = map[string]place{
	"garden": {
		namespace: v1beta1constants.GardenNamespace,
		identity:  operatorv1alpha1.SecretManagerIdentityOperator,
		isRuntime: true,
		values:    gardenValues,
	},
	"virtual": {
		namespace: v1beta1constants.GardenNamespace,
		identity:  operatorv1alpha1.SecretManagerIdentityOperator,
		hasTarget: true,
		values:    virtualValues,
	},
	"seed": {
		namespace: v1beta1constants.GardenNamespace,
		identity:  v1beta1constants.SecretManagerIdentityGardenlet,
		isRuntime: true,
		values:    func() resourcemanager.Values { return seedValues(zones[:1]) },
	},
	"seed-ha": {
		namespace: v1beta1constants.GardenNamespace,
		identity:  v1beta1constants.SecretManagerIdentityGardenlet,
		isRuntime: true,
		values:    zonalSeedValues,
	},
	"shoot": {
		namespace: shootNamespace,
		identity:  v1beta1constants.SecretManagerIdentityGardenlet,
		hasTarget: true,
		values:    shootValues,
	},
	"workerless": {
		namespace: shootNamespace,
		identity:  v1beta1constants.SecretManagerIdentityGardenlet,
		hasTarget: true,
		values:    workerlessValues,
	},
	"selfhosted-garden": {
		namespace: v1beta1constants.GardenNamespace,
		identity:  v1beta1constants.SecretManagerIdentitySelfHostedShoot,
		isRuntime: true,
		values:    selfHostedGardenValues,
	},
	"selfhosted-shoot": {
		namespace: metav1.NamespaceSystem,
		identity:  v1beta1constants.SecretManagerIdentitySelfHostedShoot,
		values:    selfHostedValues,
	},
	"selfhosted-bootstrap": {
		namespace:  metav1.NamespaceSystem,
		identity:   v1beta1constants.SecretManagerIdentitySelfHostedShoot,
		bootstraps: true,
		values:     selfHostedValues,
	},
}

// loadBalanced selects the control planes of Shoots.
var loadBalanced = resourcemanager.PodKubeAPIServerLoadBalancingWebhookConfig{
	NamespaceSelector: map[string]string{v1beta1constants.GardenRole: v1beta1constants.GardenRoleShoot},
}

func seedValues(zones []string) resourcemanager.Values {
	return resourcemanager.Values{
		HighAvailabilityConfigWebhookEnabled: true,
		DefaultNotReadyToleration:            new(int64(60)),
		DefaultUnreachableToleration:         new(int64(60)),
		LogLevel:                             "info",
		LogFormat:                            "json",
		PriorityClassName:                    v1beta1constants.PriorityClassNameSeedSystemCritical,
		SecretNameServerCA:                   v1beta1constants.SecretNameCASeed,
		Zones:                                zones,
		PodKubeAPIServerLoadBalancingWebhook: resourcemanager.PodKubeAPIServerLoadBalancingWebhook{
			Enabled: true,
			Configs: []resourcemanager.PodKubeAPIServerLoadBalancingWebhookConfig{loadBalanced},
		},
		VPAInPlaceUpdatesEnabled: true,
	}
}

func zonalSeedValues() resourcemanager.Values {
	values := seedValues(zones)
	values.DefaultSeccompProfileEnabled = true
	values.NetworkPolicyAdditionalNamespaceSelectors = []metav1.LabelSelector{
		{MatchLabels: map[string]string{"team": "platform"}},
	}
	return values
}

func gardenValues() resourcemanager.Values {
	values := seedValues(zones[:1])
	values.ManagedResourceLabels = map[string]string{
		v1beta1constants.LabelCareConditionType: string(operatorv1alpha1.VirtualComponentsHealthy),
	}
	values.PriorityClassName = v1beta1constants.PriorityClassNameGardenSystemCritical
	values.SecretNameServerCA = operatorv1alpha1.SecretNameCARuntime
	configs := &values.PodKubeAPIServerLoadBalancingWebhook.Configs
	*configs = append(*configs, resourcemanager.PodKubeAPIServerLoadBalancingWebhookConfig{
		KubeAPIServerNamePrefix: operatorv1alpha1.VirtualGardenNamePrefix,
		NamespaceSelector:       map[string]string{corev1.LabelMetadataName: v1beta1constants.GardenNamespace},
		ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key:      v1beta1constants.LabelApp,
			Operator: metav1.LabelSelectorOpNotIn,
			Values:   []string{resourcemanager.LabelValue},
		}}},
	})
	return values
}

func virtualValues() resourcemanager.Values {
	return resourcemanager.Values{
		IsWorkerless:       true,
		LogLevel:           "info",
		LogFormat:          "json",
		NamePrefix:         operatorv1alpha1.VirtualGardenNamePrefix,
		PriorityClassName:  v1beta1constants.PriorityClassNameGardenSystem400,
		SecretNameServerCA: operatorv1alpha1.SecretNameCARuntime,
		TargetNamespaces: []string{
			v1beta1constants.GardenNamespace,
			gardencorev1beta1.GardenerShootIssuerNamespace,
			gardencorev1beta1.GardenerSystemPublicNamespace,
			metav1.NamespaceSystem,
		},
	}
}

func shootValues() resourcemanager.Values {
	profile := gardencorev1beta1.SchedulingProfileBinPacking
	return resourcemanager.Values{
		ClusterIdentity:                           new("seed-identity"),
		HighAvailabilityConfigWebhookEnabled:      true,
		DefaultNotReadyToleration:                 new(int64(60)),
		DefaultUnreachableToleration:              new(int64(60)),
		KubernetesServiceHost:                     new("api.e2e.internal.example.com"),
		LogLevel:                                  "info",
		LogFormat:                                 "json",
		MachineNamespace:                          new(shootNamespace),
		NodeAgentReconciliationMaxDelay:           &metav1.Duration{Duration: 5 * time.Minute},
		NodeAgentAuthorizerEnabled:                true,
		NodeAgentAuthorizerAuthorizeWithSelectors: new(true),
		PodTopologySpreadConstraintsEnabled:       true,
		PriorityClassName:                         v1beta1constants.PriorityClassNameShootControlPlane400,
		SchedulingProfile:                         &profile,
		SecretNameServerCA:                        v1beta1constants.SecretNameCACluster,
		SystemComponentTolerations: []corev1.Toleration{{
			Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "system", Effect: corev1.TaintEffectNoSchedule,
		}},
		TargetNamespaces: []string{
			metav1.NamespaceSystem, v1beta1constants.KubernetesDashboardNamespace, corev1.NamespaceNodeLease,
		},
		TopologyAwareRoutingEnabled: true,
		VPAInPlaceUpdatesEnabled:    true,
	}
}

func workerlessValues() resourcemanager.Values {
	values := shootValues()
	values.IsWorkerless = true
	values.NodeAgentReconciliationMaxDelay = nil
	values.MachineNamespace = nil
	values.SchedulingProfile = nil
	values.SystemComponentTolerations = nil
	return values
}

// selfHostedValues are those of a Shoot whose nodes also run its control plane.
func selfHostedValues() resourcemanager.Values {
	values := shootValues()
	values.KubernetesServiceHost = nil
	values.MachineNamespace = nil
	values.SchedulingProfile = nil // a scheduler of the sandbox must find the pods
	values.VPAInPlaceUpdatesEnabled = false
	values.SystemComponentTolerations = controlPlaneTolerations()
	return values
}

func selfHostedGardenValues() resourcemanager.Values {
	return resourcemanager.Values{
		SystemComponentsConfigWebhookEnabled: true,
		HighAvailabilityConfigWebhookEnabled: true,
		PriorityClassName:                    v1beta1constants.PriorityClassNameShootControlPlane400,
		SecretNameServerCA:                   v1beta1constants.SecretNameCACluster,
		SystemComponentTolerations:           controlPlaneTolerations(),
		PodKubeAPIServerLoadBalancingWebhook: resourcemanager.PodKubeAPIServerLoadBalancingWebhook{
			Enabled: true,
			Configs: []resourcemanager.PodKubeAPIServerLoadBalancingWebhookConfig{loadBalanced},
		},
	}
}

func controlPlaneTolerations() []corev1.Toleration {
	return append(
		shootValues().SystemComponentTolerations,
		corev1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists},
	)
}
