package main

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/util"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardener/gardener-extension-networking-calico/pkg/controller"
	"github.com/gardener/gardener-extension-networking-calico/pkg/features"
)

// seedScheme has the kinds that the actuator reads and writes on a seed; with all kinds, writes of a
// fake client are slow.
var seedScheme = func() *runtime.Scheme {
	found := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(found))
	utilruntime.Must(extensionsv1alpha1.AddToScheme(found))
	utilruntime.Must(resourcesv1alpha1.AddToScheme(found))
	return found
}()

// converter serves server-side apply, which no question needs; the default one takes long to build.
var converter = managedfields.NewDeducedTypeConverter()

// network is what the actuator made of a Network.
type network struct {
	Families []extensionsv1alpha1.IPFamily `json:"families"`
	Shoot    []json.RawMessage             `json:"shoot"`
}

// networkObjects reconciles a Network on an empty seed, and returns the objects for the Shoot.
// Definitions have no content.
func networkObjects(input json.RawMessage) (any, error) {
	var in struct {
		Network json.RawMessage `json:"network"`
		Shoot   json.RawMessage `json:"shoot"`
		Gates   map[string]bool `json:"gates"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	desired := &extensionsv1alpha1.Network{}
	if err := json.Unmarshal(in.Network, desired); err != nil {
		return nil, unanswered{fmt.Errorf("cannot read the Network: %w", err)}
	}
	shoot, err := extensionscontroller.ShootFromCluster(&extensionsv1alpha1.Cluster{
		Spec: extensionsv1alpha1.ClusterSpec{Shoot: runtime.RawExtension{Raw: in.Shoot}},
	})
	if err != nil || shoot == nil {
		return nil, unanswered{fmt.Errorf("cannot read the Shoot: %w", err)}
	}
	cluster := &extensionscontroller.Cluster{Shoot: shoot}
	cluster.ObjectMeta.Name = desired.Namespace
	if err := features.FeatureGate.SetFromMap(in.Gates); err != nil {
		return nil, unanswered{fmt.Errorf("cannot set the feature gates: %w", err)}
	}

	ctx := context.Background()
	objects := fake.NewClientBuilder().WithScheme(seedScheme).WithTypeConverters(converter).
		WithObjects(desired.DeepCopy()).WithStatusSubresource(desired).Build()
	if err := objects.Get(ctx, client.ObjectKeyFromObject(desired), desired); err != nil {
		return nil, unanswered{err}
	}
	actuator := controller.NewActuator(
		process{objects: objects}, monitoring{}, extensionscontroller.ChartRendererFactoryFunc(util.NewChartRendererForShoot),
	)
	if err := actuator.Reconcile(ctx, logr.Discard(), desired, cluster); err != nil {
		return nil, err
	}

	found := network{Families: desired.Status.IPFamilies}
	content, err := shipped(ctx, objects, desired.Namespace)
	if err != nil {
		return nil, err
	}
	if found.Shoot, err = documents(content); err != nil {
		return nil, err
	}
	return found, nil
}

// shipped returns the content of the ManagedResource.
func shipped(ctx context.Context, objects client.Client, namespace string) ([]byte, error) {
	resource := &resourcesv1alpha1.ManagedResource{}
	key := client.ObjectKey{Namespace: namespace, Name: controller.CalicoConfigManagedResourceName}
	if err := objects.Get(ctx, key, resource); err != nil {
		return nil, err
	}
	var found bytes.Buffer
	for _, reference := range resource.Spec.SecretRefs {
		secret := &corev1.Secret{}
		if err := objects.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, secret); err != nil {
			return nil, err
		}
		for _, content := range secret.Data {
			found.WriteString("\n---\n")
			found.Write(content)
		}
	}
	return found.Bytes(), nil
}

// decoded are the texts of documents that were decoded before: most are the same in every answer.
var decoded = map[string]json.RawMessage{}

// documents returns the objects in a rendered chart, decoded as a resource manager does.
func documents(content []byte) ([]json.RawMessage, error) {
	found := []json.RawMessage{}
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		raw, known := decoded[string(text)]
		if !known {
			if raw, err = document(text); err != nil {
				return nil, fmt.Errorf("the rendered objects cannot be decoded: %w", err)
			}
			decoded[string(text)] = raw
		}
		if raw != nil {
			found = append(found, raw)
		}
	}
}

// document returns the object in a document, or nil if there is none.
func document(text []byte) (json.RawMessage, error) {
	raw, err := yaml.ToJSON(text)
	if err != nil || string(raw) == "null" {
		return nil, err
	}
	object := map[string]any{}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	if object["kind"] != "CustomResourceDefinition" {
		return raw, nil
	}
	delete(object, "spec")
	delete(object, "status")
	return json.Marshal(object)
}

// monitoring is a chart applier that ignores the one chart for the seed.
type monitoring struct{ kubernetes.ChartApplier }

func (monitoring) ApplyFromEmbeddedFS(context.Context, embed.FS, string, string, string, ...kubernetes.ApplyOption) error {
	return nil
}

// process is a manager whose cache and API server always agree.
type process struct {
	manager.Manager
	objects client.Client
}

func (p process) GetScheme() *runtime.Scheme  { return admissionScheme }
func (p process) GetClient() client.Client    { return p.objects }
func (p process) GetAPIReader() client.Reader { return p.objects }
func (p process) GetConfig() *rest.Config     { return nil }
