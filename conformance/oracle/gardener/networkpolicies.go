package main

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/networkpolicy"
)

// networkPolicies reconciles every Service of a cluster, and returns the NetworkPolicies that exist
// then, by namespace and name.
func networkPolicies(input json.RawMessage) (any, error) {
	var in struct {
		Objects                   []json.RawMessage                                        `json:"objects"`
		IngressControllerSelector *resourcemanagerconfigv1alpha1.IngressControllerSelector `json:"ingressControllerSelector"`
		NamespaceSelectors        []metav1.LabelSelector                                   `json:"namespaceSelectors"` // of Services that are handled
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	target, err := clusterOf(in.Objects)
	if err != nil {
		return nil, err
	}
	reconciler := &networkpolicy.Reconciler{
		TargetClient: target,
		Config: resourcemanagerconfigv1alpha1.NetworkPolicyControllerConfig{
			IngressControllerSelector: in.IngressControllerSelector,
			NamespaceSelectors:        in.NamespaceSelectors,
		},
		Recorder:    events.NewFakeRecorder(1000),
		CacheSynced: true,
	}
	ctx := context.Background()
	if err := reconciler.AddToManager(ctx, process{}, meshed{site{objects: target}}); err != nil {
		return nil, err
	}
	services := &corev1.ServiceList{}
	if err := target.List(ctx, services); err != nil {
		return nil, err
	}
	for _, service := range services.Items {
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&service)}
		_, err := reconciler.Reconcile(ctx, request)
		// Two ports with the same target race for one policy; the controller tries again.
		for attempt := 0; err != nil && attempt < 10; attempt++ {
			_, err = reconciler.Reconcile(ctx, request)
		}
		if err != nil {
			return nil, err
		}
	}
	policies := &networkingv1.NetworkPolicyList{}
	if err := target.List(ctx, policies); err != nil {
		return nil, err
	}
	found := map[string]any{}
	for _, policy := range policies.Items {
		found[policy.Namespace+"/"+policy.Name] = map[string]any{"labels": policy.Labels, "spec": policy.Spec}
	}
	return found, nil
}

// meshed is a cluster that serves the kinds of Istio, too.
type meshed struct{ site }

func (meshed) GetRESTMapper() meta.RESTMapper { return served }
