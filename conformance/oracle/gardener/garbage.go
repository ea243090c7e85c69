package main

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/garbagecollector"
)

// garbage collects once, and returns the ConfigMaps and Secrets that are left.
func garbage(input json.RawMessage) (any, error) {
	var in struct {
		Objects []json.RawMessage `json:"objects"`
		Now     time.Time         `json:"now"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	target, err := clusterOf(in.Objects)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	reconciler := &garbagecollector.Reconciler{
		TargetClient:          target,
		Config:                resourcemanagerconfigv1alpha1.GarbageCollectorControllerConfig{SyncPeriod: &metav1.Duration{Duration: time.Hour}},
		Clock:                 testclock.NewFakeClock(in.Now),
		MinimumObjectLifetime: new(10 * time.Minute),
	}
	if _, err := reconciler.Reconcile(ctx, reconcile.Request{}); err != nil {
		return nil, err
	}
	maps, secrets := &corev1.ConfigMapList{}, &corev1.SecretList{}
	if err := target.List(ctx, maps); err != nil {
		return nil, err
	}
	if err := target.List(ctx, secrets); err != nil {
		return nil, err
	}
	left := []string{}
	for _, each := range maps.Items {
		left = append(left, "ConfigMap/"+each.Namespace+"/"+each.Name)
	}
	for _, each := range secrets.Items {
		left = append(left, "Secret/"+each.Namespace+"/"+each.Name)
	}
	return map[string]any{"left": left}, nil
}
