package main

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener/gardener/pkg/resourcemanager/controller/garbagecollector/references"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
)

// uniqueNames gives a ConfigMap or Secret a unique name, and any other object annotations for the
// ConfigMaps and Secrets that it uses.
func uniqueNames(input json.RawMessage) (any, error) {
	var in struct {
		Object     json.RawMessage `json:"object"`
		Additional []string        `json:"additional"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	obj, err := object(in.Object)
	if err != nil {
		return nil, err
	}
	switch obj.(type) {
	case *corev1.ConfigMap, *corev1.Secret:
		err = kubernetesutils.MakeUnique(obj)
	default:
		err = references.InjectAnnotations(obj, in.Additional...)
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{"object": obj}, nil
}
