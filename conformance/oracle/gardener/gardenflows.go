package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
)

// gardenFlows reconciles a Garden, or deletes it, and returns the tasks of the flows that ran, and at
// last, after a reconciliation, what the status says about credentials.
func gardenFlows(input json.RawMessage) (any, error) {
	var in struct {
		gardenInput
		Deleted bool `json:"deleted"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	run, err := in.prepared(func(garden *operatorv1alpha1.Garden) {
		if in.Deleted {
			garden.DeletionTimestamp = &metav1.Time{Time: in.Now}
			garden.Finalizers = []string{operatorv1alpha1.FinalizerName}
		}
	})
	if err != nil {
		return nil, err
	}
	defer run.undo()
	seen := &tasksSeen{names: map[string]bool{}}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ctx = log.IntoContext(ctx, logr.New(taskSink{seen: seen}))
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(run.garden)}
	if _, err := run.reconciler.Reconcile(ctx, request); err != nil {
		return nil, err
	}
	answer := seen.sorted()
	if !in.Deleted {
		found := &operatorv1alpha1.Garden{}
		if err := run.site.Get(ctx, request.NamespacedName, found); err != nil {
			return nil, err
		}
		answer = append(answer, found.Status.Credentials)
	}
	return answer, nil
}

// tasksSeen collects the tasks that flows name in their logs.
type tasksSeen struct {
	mutex sync.Mutex
	names map[string]bool
}

// sorted returns `FLOW: TASK` for each of them.
func (s *tasksSeen) sorted() []any {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found := []any{}
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		found = append(found, name)
	}
	return found
}

// taskSink is a log that remembers nothing but the names of tasks.
type taskSink struct {
	seen *tasksSeen
	flow string
}

func (taskSink) Init(logr.RuntimeInfo)          {}
func (taskSink) Enabled(int) bool               { return false }
func (taskSink) Info(int, string, ...any)       {}
func (taskSink) Error(error, string, ...any)    {}
func (s taskSink) WithName(string) logr.LogSink { return s }

func (s taskSink) WithValues(pairs ...any) logr.LogSink {
	for i := 0; i+1 < len(pairs); i += 2 {
		switch value := fmt.Sprint(pairs[i+1]); pairs[i] {
		case "flow":
			s.flow = value
		case "task":
			s.seen.mutex.Lock()
			s.seen.names[s.flow+": "+value] = true
			s.seen.mutex.Unlock()
		}
	}
	return s
}
