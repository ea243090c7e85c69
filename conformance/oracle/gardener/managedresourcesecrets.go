package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/managedresources"
)

// managedResourceSecrets writes objects into the Secret of a ManagedResource, and returns all
// Secrets and ManagedResources that exist then. As compressors differ, the Secret gets the bytes
// of the question; the documents are those that the original would write, and would read.
func managedResourceSecrets(input json.RawMessage) (any, error) {
	var in struct {
		Objects   []json.RawMessage `json:"objects"`
		Data      []byte            `json:"data"`
		Way       string            `json:"way"`
		Namespace string            `json:"namespace"`
		Name      string            `json:"name"`
		Origin    string            `json:"origin"`
		Keep      *bool             `json:"keep"`
		Labels    map[string]string `json:"labels"`
		Prefix    bool              `json:"prefix"`
		Class     string            `json:"class"`
		Inject    map[string]string `json:"inject"`
		Force     *bool             `json:"force"`
		Existing  []json.RawMessage `json:"existing"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	objects := make([]client.Object, 0, len(in.Objects))
	for _, raw := range in.Objects {
		obj, err := object(raw)
		if err != nil {
			return nil, err
		}
		objects = append(objects, obj)
	}
	registry := managedresources.NewRegistry(kubernetes.SeedScheme, kubernetes.SeedCodec, kubernetes.SeedSerializer)
	serialized, err := registry.AddAllAndSerialize(objects...)
	if err != nil {
		return nil, err
	}
	written, err := documents(resourcesv1alpha1.CompressedDataKey, serialized[resourcesv1alpha1.CompressedDataKey])
	if err != nil {
		return nil, err
	}
	read, err := documents(resourcesv1alpha1.CompressedDataKey, in.Data)
	if err != nil {
		return nil, err
	}
	cluster, err := clusterOf(in.Existing)
	if err != nil {
		return nil, err
	}
	ctx, data, keep := context.Background(), map[string][]byte{resourcesv1alpha1.CompressedDataKey: in.Data}, in.Keep != nil && *in.Keep
	switch in.Way {
	case "seed":
		err = managedresources.CreateForSeedWithLabels(ctx, cluster, in.Namespace, in.Name, keep, in.Labels, data)
	case "shoot":
		err = managedresources.CreateForShootWithLabels(ctx, cluster, in.Namespace, in.Name, in.Origin, keep, in.Labels, data)
	case "other":
		err = managedresources.Create(ctx, cluster, in.Namespace, in.Name, in.Labels, in.Prefix, in.Class, data, in.Keep, in.Inject, in.Force)
	default:
		return nil, unanswered{fmt.Errorf("unknown way %q", in.Way)}
	}
	if err != nil {
		return nil, err
	}
	secrets, resources := &corev1.SecretList{}, &resourcesv1alpha1.ManagedResourceList{}
	if err := cluster.List(ctx, secrets); err != nil {
		return nil, err
	}
	if err := cluster.List(ctx, resources); err != nil {
		return nil, err
	}
	return map[string]any{"written": written, "read": read, "secrets": secrets.Items, "resources": resources.Items}, nil
}

// documents returns the objects of a value in the Secret of a ManagedResource.
func documents(key string, value []byte) ([]any, error) {
	var text io.Reader = bytes.NewReader(value)
	if strings.HasSuffix(key, resourcesv1alpha1.BrotliCompressionSuffix) {
		text = brotli.NewReader(text)
	}
	stream, err := io.ReadAll(text)
	if err != nil {
		return nil, err
	}
	found, decoder := []any{}, yaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 1<<16)
	for {
		var obj any
		switch err := decoder.Decode(&obj); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		case obj != nil:
			found = append(found, obj)
		}
	}
}
