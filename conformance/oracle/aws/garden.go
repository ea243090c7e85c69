package main

import (
	"context"
	"encoding/json"
	"fmt"

	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	"github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/security"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardener/gardener-extension-provider-aws/pkg/admission/mutator"
	"github.com/gardener/gardener-extension-provider-aws/pkg/admission/validator"
)

type gardenQuestion struct {
	Object json.RawMessage   `json:"object"`
	Old    json.RawMessage   `json:"old"`
	Others []json.RawMessage `json:"others"`
}

// checker is a validator, and the type whose objects it gets.
type checker struct {
	validator extensionswebhook.Validator
	object    func() client.Object
}

// checkerOf returns the validator of a kind.
func checkerOf(kind string, mgr manager.Manager) (checker, error) {
	switch kind {
	case "BackupBucket":
		return checker{validator.NewBackupBucketValidator(mgr), func() client.Object { return &core.BackupBucket{} }}, nil
	case "CloudProfile":
		return checker{validator.NewCloudProfileValidator(mgr), func() client.Object { return &core.CloudProfile{} }}, nil
	case "CredentialsBinding":
		return checker{validator.NewCredentialsBindingValidator(mgr), func() client.Object { return &security.CredentialsBinding{} }}, nil
	case "NamespacedCloudProfile":
		return checker{validator.NewNamespacedCloudProfileValidator(mgr), func() client.Object { return &core.NamespacedCloudProfile{} }}, nil
	case "Secret":
		return checker{validator.NewSecretValidator(), func() client.Object { return &corev1.Secret{} }}, nil
	case "SecretBinding":
		return checker{validator.NewSecretBindingValidator(mgr), func() client.Object { return &core.SecretBinding{} }}, nil
	case "Seed":
		return checker{validator.NewSeedValidator(mgr), func() client.Object { return &core.Seed{} }}, nil
	case "WorkloadIdentity":
		return checker{validator.NewWorkloadIdentityValidator(), func() client.Object { return &securityv1alpha1.WorkloadIdentity{} }}, nil
	default:
		return checker{}, unanswered{fmt.Errorf("there is no validator of %s", kind)}
	}
}

// gardenObject validates an object of the garden, and the change from an old one.
func gardenObject(input json.RawMessage) (any, error) {
	var in gardenQuestion
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	objects, err := clusterOf(in.Others)
	if err != nil {
		return nil, err
	}
	kind, err := kindOf(in.Object)
	if err != nil {
		return nil, err
	}
	validating, err := checkerOf(kind, process{objects: objects})
	if err != nil {
		return nil, err
	}
	desired, err := into(validating.object(), in.Object)
	if err != nil {
		return nil, err
	}
	var old client.Object
	if !isAbsent(in.Old) {
		if old, err = into(validating.object(), in.Old); err != nil {
			return nil, err
		}
	}
	return refusedBy(validating.validator.Validate(context.Background(), desired, old)), nil
}

// imageFlavors returns a CloudProfile or NamespacedCloudProfile as the mutator leaves it.
func imageFlavors(input json.RawMessage) (any, error) {
	var in gardenQuestion
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	objects, err := clusterOf(in.Others)
	if err != nil {
		return nil, err
	}
	before, err := object(in.Object)
	if err != nil {
		return nil, err
	}
	kind, err := kindOf(in.Object)
	if err != nil {
		return nil, err
	}
	mutating := mutator.NewCloudProfileMutator(process{objects: objects})
	if kind == "NamespacedCloudProfile" {
		mutating = mutator.NewNamespacedCloudProfileMutator(process{objects: objects})
	}
	after, ok := before.DeepCopyObject().(client.Object)
	if !ok {
		return nil, unanswered{fmt.Errorf("%T is not an object", before)}
	}
	if err := mutating.Mutate(context.Background(), after, nil); err != nil {
		return nil, err
	}
	return map[string]any{"before": before, "after": after}, nil
}

func kindOf(raw json.RawMessage) (string, error) {
	var found struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(raw, &found); err != nil {
		return "", unanswered{err}
	}
	return found.Kind, nil
}

// into reads an object as a webhook does, which gets it with all its defaults.
func into(found client.Object, raw json.RawMessage) (client.Object, error) {
	if err := runtime.DecodeInto(lenient, raw, found); err != nil {
		return nil, unanswered{fmt.Errorf("cannot read the object: %w", err)}
	}
	return found, nil
}
