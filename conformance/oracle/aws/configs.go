package main

import (
	"encoding/json"
	"reflect"

	"github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener/gardener-extension-provider-aws/pkg/apis/aws"
	"github.com/gardener/gardener-extension-provider-aws/pkg/apis/aws/validation"
)

// infrastructure validates an InfrastructureConfig, and the change from an old one.
func infrastructure(input json.RawMessage) (any, error) {
	var in struct {
		Config     json.RawMessage `json:"config"`
		Old        json.RawMessage `json:"old"`
		IPFamilies []core.IPFamily `json:"ipFamilies"`
		Nodes      *string         `json:"nodes"`
		Pods       *string         `json:"pods"`
		Services   *string         `json:"services"`
		Zones      []string        `json:"zones"` // of the region; null if the profile lacks it
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	var old *aws.InfrastructureConfig
	if !isAbsent(in.Old) {
		old = &aws.InfrastructureConfig{}
		if errs := read(lenient, in.Old, old, field.NewPath("old")); len(errs) > 0 {
			return verdict{refusals(errs)}, nil
		}
	}
	config := &aws.InfrastructureConfig{}
	if errs := read(strict, in.Config, config, nil); len(errs) > 0 {
		return verdict{refusals(errs)}, nil
	}
	const region = "region"
	profile := &gardencorev1beta1.CloudProfileSpec{}
	if in.Zones != nil {
		zones := make([]gardencorev1beta1.AvailabilityZone, 0, len(in.Zones))
		for _, name := range in.Zones {
			zones = append(zones, gardencorev1beta1.AvailabilityZone{Name: name})
		}
		profile.Regions = []gardencorev1beta1.Region{{Name: region, Zones: zones}}
	}
	shoot := &core.Shoot{Spec: core.ShootSpec{Region: region}}
	found := validation.ValidateInfrastructureConfigAgainstCloudProfile(old, config, shoot, profile, nil)
	if old != nil && !reflect.DeepEqual(old, config) {
		found = append(found, validation.ValidateInfrastructureConfigUpdate(old, config)...)
	}
	found = append(found, validation.ValidateInfrastructureConfig(config, in.IPFamilies, in.Nodes, in.Pods, in.Services)...)
	return verdict{refusals(found)}, nil
}

// controlPlane validates a ControlPlaneConfig for a version of Kubernetes.
func controlPlane(input json.RawMessage) (any, error) {
	var in struct {
		Config  json.RawMessage `json:"config"`
		Version string          `json:"version"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	config := &aws.ControlPlaneConfig{}
	if errs := read(strict, in.Config, config, nil); len(errs) > 0 {
		return verdict{refusals(errs)}, nil
	}
	return verdict{refusals(validation.ValidateControlPlaneConfig(config, in.Version, nil))}, nil
}

// worker validates a worker pool with its WorkerConfig, and the change from an old one.
func worker(input json.RawMessage) (any, error) {
	var in struct {
		Pool  json.RawMessage `json:"pool"`
		Old   json.RawMessage `json:"old"`
		Zones []string        `json:"zones"` // of the InfrastructureConfig
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	pool, err := poolOf(in.Pool)
	if err != nil {
		return nil, err
	}
	var (
		found field.ErrorList
		path  = field.NewPath("spec", "provider", "workers")
		zones []aws.Zone
	)
	if !isAbsent(in.Old) {
		old, err := poolOf(in.Old)
		if err != nil {
			return nil, err
		}
		found = validation.ValidateWorkersUpdate([]core.Worker{*old}, []core.Worker{*pool}, path)
	}
	var config *aws.WorkerConfig
	if pool.ProviderConfig != nil {
		config = &aws.WorkerConfig{}
		errs := read(strict, pool.ProviderConfig.Raw, config, path.Index(0).Child("providerConfig"))
		if len(errs) > 0 {
			return verdict{refusals(append(found, errs...))}, nil
		}
	}
	for _, name := range in.Zones {
		zones = append(zones, aws.Zone{Name: name})
	}
	found = append(found, validation.ValidateWorker(*pool, zones, config, path.Index(0))...)
	return verdict{refusals(found)}, nil
}

func poolOf(raw json.RawMessage) (*core.Worker, error) {
	external, pool := &gardencorev1beta1.Worker{}, &core.Worker{}
	if err := decode(raw, external); err != nil {
		return nil, err
	}
	return pool, gardencorev1beta1.Convert_v1beta1_Worker_To_core_Worker(external, pool, nil)
}

// backupBucket validates a BackupBucketConfig. An update reads it strictly, a creation does not.
func backupBucket(input json.RawMessage) (any, error) {
	var in struct {
		Config json.RawMessage `json:"config"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	config, err := extension(in.Config)
	if err != nil {
		return nil, err
	}
	if config == nil {
		return verdict{refusals(nil)}, nil
	}
	return verdict{refusals(validation.ValidateBackupBucketProviderConfigUpdate(strict, lenient, nil, config, nil))}, nil
}
