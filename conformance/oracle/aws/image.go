package main

import (
	"encoding/json"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener/gardener-extension-provider-aws/pkg/apis/aws"
	"github.com/gardener/gardener-extension-provider-aws/pkg/apis/aws/helper"
)

// image returns the AMI for a machine, or null if the CloudProfile has none.
func image(input json.RawMessage) (any, error) {
	var in struct {
		Config       json.RawMessage                          `json:"config"`
		Definitions  []gardencorev1beta1.CapabilityDefinition `json:"machineCapabilities"`
		Machine      gardencorev1beta1.MachineType            `json:"machineType"`
		Architecture *string                                  `json:"architecture"`
		Name         string                                   `json:"name"`
		Version      string                                   `json:"version"`
		Region       string                                   `json:"region"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	config := &aws.CloudProfileConfig{}
	if errs := read(lenient, in.Config, config, nil); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	definitions := helper.NormalizeCapabilityDefinitions(in.Definitions)
	machine := helper.NormalizeMachineTypeCapabilities(in.Machine.Capabilities, in.Architecture, definitions)
	found, err := helper.FindImageInCloudProfile(config, in.Name, in.Version, in.Region, machine, definitions)
	if err != nil {
		return map[string]any{"ami": nil, "why": err.Error()}, nil
	}
	return map[string]any{"ami": found.Regions[0].AMI}, nil
}
