package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	vpaautoscalingv1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardener/gardener/pkg/apis/utils/timewindow"
	"github.com/gardener/gardener/pkg/controller/vpaevictionrequirements"
)

// schedules returns when an etcd is defragmented, and when it gets a full snapshot.
func schedules(input json.RawMessage) (any, error) {
	var in struct {
		Begin   string      `json:"begin"`
		End     string      `json:"end"`
		UID     types.UID   `json:"uid"`
		Created metav1.Time `json:"created"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	const format = "%d %d * * *"
	defragmentation, err := timewindow.DetermineSchedule(format, in.Begin, in.End, in.UID, in.Created, timewindow.RandomizeWithinTimeWindow)
	if err != nil {
		return nil, err
	}
	snapshot, err := timewindow.DetermineSchedule(format, in.Begin, in.End, in.UID, in.Created, timewindow.RandomizeWithinFirstHourOfTimeWindow)
	if err != nil {
		return nil, err
	}
	return map[string]string{"defragmentation": defragmentation, "snapshot": snapshot}, nil
}

// evictions lets the controller set the eviction requirements of a VerticalPodAutoscaler at some
// time, and says whether it forbids or allows downscaling, or leaves the object alone.
func evictions(input json.RawMessage) (any, error) {
	var in struct {
		Autoscaler json.RawMessage `json:"autoscaler"`
		Now        time.Time       `json:"now"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	obj, err := object(in.Autoscaler)
	if err != nil {
		return nil, err
	}
	given, ok := obj.(*vpaautoscalingv1.VerticalPodAutoscaler)
	if !ok || given.Spec.UpdatePolicy == nil {
		return nil, unanswered{fmt.Errorf("%T is not a VerticalPodAutoscaler with an updatePolicy", obj)}
	}
	objects, err := clusterOf([]json.RawMessage{in.Autoscaler})
	if err != nil {
		return nil, err
	}
	reconciler := &vpaevictionrequirements.Reconciler{SeedClient: objects, Clock: testclock.NewFakeClock(in.Now)}
	ctx, key := context.Background(), client.ObjectKeyFromObject(given)
	if _, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: key}); err != nil {
		return nil, err
	}
	written := &vpaautoscalingv1.VerticalPodAutoscaler{}
	if err := objects.Get(ctx, key, written); err != nil {
		return nil, err
	}
	requirements := written.Spec.UpdatePolicy.EvictionRequirements
	switch {
	case len(requirements) == 0:
		return map[string]string{"downscaling": "allowed"}, nil
	case reflect.DeepEqual(requirements, given.Spec.UpdatePolicy.EvictionRequirements):
		return map[string]string{"downscaling": "untouched"}, nil
	default:
		return map[string]string{"downscaling": "forbidden"}, nil
	}
}
