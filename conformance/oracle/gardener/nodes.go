package main

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardener/gardener/pkg/api/indexer"
	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/node/agentreconciliationdelay"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/node/criticalcomponents"
)

// criticalComponents reconciles a Node once, and returns its taints, and what is reported.
func criticalComponents(input json.RawMessage) (any, error) {
	var in struct {
		Node    string            `json:"node"`
		Objects []json.RawMessage `json:"objects"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	builder, err := builderOf(in.Objects)
	if err != nil {
		return nil, err
	}
	target := builder.WithIndex(&corev1.Pod{}, indexer.PodNodeName, indexer.PodNodeNameIndexerFunc).Build()
	recorder := events.NewFakeRecorder(100)
	reconciler := &criticalcomponents.Reconciler{
		TargetClient: target,
		Config:       resourcemanagerconfigv1alpha1.NodeCriticalComponentsControllerConfig{Backoff: &metav1.Duration{Duration: 10 * time.Second}},
		Recorder:     recorder,
	}
	ctx, key := context.Background(), client.ObjectKey{Name: in.Node}
	result, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: key})
	if err != nil {
		return nil, err
	}
	close(recorder.Events)
	reported := []string{}
	for event := range recorder.Events {
		reported = append(reported, event)
	}
	node := &corev1.Node{}
	if err := target.Get(ctx, key, node); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	return map[string]any{"taints": node.Spec.Taints, "again": result.RequeueAfter.Seconds(), "events": reported}, nil
}

// nodeDelays reconciles all Nodes once, and returns their annotations by name.
func nodeDelays(input json.RawMessage) (any, error) {
	var in struct {
		Objects []json.RawMessage `json:"objects"`
		Min     metav1.Duration   `json:"min"`
		Max     metav1.Duration   `json:"max"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	builder, err := builderOf(in.Objects)
	if err != nil {
		return nil, err
	}
	target := builder.WithScheme(coreOnly).Build()
	reconciler := &agentreconciliationdelay.Reconciler{
		TargetClient: target,
		Config:       resourcemanagerconfigv1alpha1.NodeAgentReconciliationDelayControllerConfig{MinDelay: &in.Min, MaxDelay: &in.Max},
	}
	ctx := context.Background()
	if _, err := reconciler.Reconcile(ctx, reconcile.Request{}); err != nil {
		return nil, err
	}
	nodes, found := &corev1.NodeList{}, map[string]any{}
	if err := target.List(ctx, nodes); err != nil {
		return nil, err
	}
	for _, node := range nodes.Items {
		found[node.Name] = node.Annotations
	}
	return found, nil
}
