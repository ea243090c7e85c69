package main

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	operatorvalidation "github.com/gardener/gardener/pkg/api/config/operator/v1alpha1/validation"
	resourcemanagervalidation "github.com/gardener/gardener/pkg/api/config/resourcemanager/v1alpha1/validation"
	operatorconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/operator/v1alpha1"
	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	"github.com/gardener/gardener/pkg/features"
	operatorfeatures "github.com/gardener/gardener/pkg/operator/features"
)

// loaded is a configuration file with its defaults, and why it is refused.
type loaded struct {
	Refusals      []refusal `json:"refusals"`
	Configuration any       `json:"configuration,omitempty"`
}

var (
	resourceManagerConfigurations = decoderOf(resourcemanagerconfigv1alpha1.AddToScheme)
	operatorConfigurations        = decoderOf(operatorconfigv1alpha1.AddToScheme)
)

// decoderOf returns a decoder of configuration files, as the originals' commands have it.
func decoderOf(add func(*runtime.Scheme) error) runtime.Decoder {
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		panic(err)
	}
	return serializer.NewCodecFactory(scheme).UniversalDecoder()
}

// resourceManagerConfiguration loads a file as the resource manager's command does.
func resourceManagerConfiguration(input json.RawMessage) (any, error) {
	config := &resourcemanagerconfigv1alpha1.ResourceManagerConfiguration{}
	if err := runtime.DecodeInto(resourceManagerConfigurations, input, config); err != nil {
		return unreadable(err), nil
	}
	return loaded{refusals(resourcemanagervalidation.ValidateResourceManagerConfiguration(config)), config}, nil
}

// operatorConfiguration loads a file as the operator's command does.
func operatorConfiguration(input json.RawMessage) (any, error) {
	config := &operatorconfigv1alpha1.OperatorConfiguration{}
	if err := runtime.DecodeInto(operatorConfigurations, input, config); err != nil {
		return unreadable(err), nil
	}
	// Gates are global in the original; each question starts with the defaults.
	gates := features.DefaultFeatureGate.DeepCopy()
	if err := gates.SetFromMap(config.FeatureGates); err != nil {
		return loaded{Refusals: []refusal{{"FieldValueInvalid", "featureGates", err.Error()}}}, nil
	}
	return loaded{refusals(operatorvalidation.ValidateOperatorConfiguration(config)), config}, nil
}

func unreadable(err error) loaded {
	return loaded{Refusals: []refusal{{"FieldValueInvalid", "", fmt.Sprintf("cannot be decoded: %v", err)}}}
}

func init() { operatorfeatures.RegisterFeatureGates() }
