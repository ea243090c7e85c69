package main

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// decoder reads objects of the kinds in the oracle's scheme, without setting defaults.
var decoder = serializer.NewCodecFactory(scheme).UniversalDeserializer()

// converter serves server-side apply, which no question needs; the default one takes long to build.
var converter = managedfields.NewDeducedTypeConverter()

// coreOnly is a scheme of few kinds; with all kinds, writes of a fake client are slow.
var coreOnly = func() *runtime.Scheme {
	found := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(found))
	return found
}()

// object decodes an object into the type of its kind.
func object(raw json.RawMessage) (client.Object, error) {
	decoded, _, err := decoder.Decode(raw, nil, nil)
	if err != nil {
		return nil, unanswered{fmt.Errorf("cannot read the object: %w", err)}
	}
	typed, ok := decoded.(client.Object)
	if !ok {
		return nil, unanswered{fmt.Errorf("%T is not an object", decoded)}
	}
	return typed, nil
}

// clusterOf returns a client for a cluster that contains the objects.
func clusterOf(raw []json.RawMessage) (client.WithWatch, error) {
	builder, err := builderOf(raw)
	if err != nil {
		return nil, err
	}
	return builder.Build(), nil
}

// builderOf returns what builds such a client, for asks that have more to say about it.
func builderOf(raw []json.RawMessage) (*fake.ClientBuilder, error) {
	builder := fake.NewClientBuilder().WithScheme(scheme).WithTypeConverters(converter)
	for _, each := range raw {
		obj, err := object(each)
		if err != nil {
			return nil, err
		}
		builder.WithObjects(obj).WithStatusSubresource(obj)
	}
	return builder, nil
}
