package main

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
)

// managedResource judges a ManagedResource by its CRD, and returns the spec that controllers read.
func managedResource(input json.RawMessage) (any, error) {
	var in struct {
		Object json.RawMessage `json:"object"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	definition, err := definitionOf(resourceManagerDefinitions + "/crd-resources.gardener.cloud_managedresources.yaml")
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(in.Object); err != nil { // keeps integers
		return nil, unanswered{err}
	}
	definition.setDefaults(obj)
	if problems := definition.problems(obj, nil); len(problems) > 0 {
		return map[string]any{"refusals": refusals(problems)}, nil
	}
	read := &resourcesv1alpha1.ManagedResource{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, read); err != nil {
		return nil, err
	}
	return map[string]any{"refusals": []refusal{}, "spec": read.Spec}, nil
}
