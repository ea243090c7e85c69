package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardener/gardener-extension-provider-aws/pkg/admission/mutator"
	"github.com/gardener/gardener-extension-provider-aws/pkg/admission/validator"
)

// shoot validates a Shoot in a cluster with other objects, and the change from an old one.
func shoot(input json.RawMessage) (any, error) {
	var in struct {
		Object json.RawMessage   `json:"object"`
		Old    json.RawMessage   `json:"old"`
		Others []json.RawMessage `json:"others"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	objects, err := clusterOf(in.Others)
	if err != nil {
		return nil, err
	}
	desired, err := internalShoot(in.Object)
	if err != nil {
		return nil, err
	}
	var old client.Object // a nil *core.Shoot in it would not be nil
	if !isAbsent(in.Old) {
		if old, err = internalShoot(in.Old); err != nil {
			return nil, err
		}
	}
	validating := validator.NewShootValidator(process{objects: objects})
	return refusedBy(validating.Validate(context.Background(), desired, old)), nil
}

// shootDefaults returns Shoots as their type has them, and the new one as the mutator leaves it.
func shootDefaults(input json.RawMessage) (any, error) {
	var in struct {
		Object json.RawMessage `json:"object"`
		Old    json.RawMessage `json:"old"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	desired, err := versionedShoot(in.Object)
	if err != nil {
		return nil, err
	}
	var old client.Object
	if !isAbsent(in.Old) {
		if old, err = versionedShoot(in.Old); err != nil {
			return nil, err
		}
	}
	before, err := json.Marshal(desired)
	if err != nil {
		return nil, err
	}
	if err := mutator.NewShootMutator(process{}).Mutate(context.Background(), desired, old); err != nil {
		return nil, err
	}
	after, err := json.Marshal(desired)
	if err != nil {
		return nil, err
	}
	return map[string]any{"old": old, "before": json.RawMessage(before), "after": json.RawMessage(after)}, nil
}

// internalShoot reads a Shoot as the webhook does, which gets it with all its defaults.
func internalShoot(raw json.RawMessage) (*core.Shoot, error) {
	found := &core.Shoot{}
	if err := runtime.DecodeInto(lenient, raw, found); err != nil {
		return nil, unanswered{fmt.Errorf("cannot read the Shoot: %w", err)}
	}
	return found, nil
}

// versionedShoot reads a Shoot without defaults, some of which are random.
func versionedShoot(raw json.RawMessage) (*gardencorev1beta1.Shoot, error) {
	found := &gardencorev1beta1.Shoot{}
	if err := runtime.DecodeInto(decoder, raw, found); err != nil {
		return nil, unanswered{fmt.Errorf("cannot read the Shoot: %w", err)}
	}
	return found, nil
}

// process is a manager whose cache, client and API server always agree.
type process struct {
	manager.Manager
	objects client.Client
}

func (p process) GetScheme() *runtime.Scheme  { return scheme }
func (p process) GetClient() client.Client    { return p.objects }
func (p process) GetAPIReader() client.Reader { return p.objects }
