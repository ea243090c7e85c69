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
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

const seedVersion = "1.34.0"

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
	Seed     []string                      `json:"seed"`
}

// networkObjects reconciles a Network on an empty seed, and returns the objects for the Shoot, and
// the names of those next to the Network. Definitions have no content.
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
	renderer, err := util.NewChartRendererForShoot(seedVersion)
	if err != nil {
		return nil, unanswered{err}
	}
	seed := &applied{Interface: renderer}
	actuator := controller.NewActuator(
		process{objects: objects}, seed, extensionscontroller.ChartRendererFactoryFunc(util.NewChartRendererForShoot),
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
	found.Seed, err = names(seed.manifest.Bytes())
	return found, err
}

// names returns the kinds and names of the objects in a rendered chart.
func names(content []byte) ([]string, error) {
	objects, err := documents(content)
	if err != nil {
		return nil, err
	}
	found := []string{}
	for _, raw := range objects {
		object := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(raw, object); err != nil {
			return nil, err
		}
		found = append(found, object.Kind+" "+object.Name)
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

// applied is a chart applier that keeps what it renders.
type applied struct {
	chartrenderer.Interface
	manifest bytes.Buffer
}

func (a *applied) ApplyFromEmbeddedFS(_ context.Context, files embed.FS, path, namespace, name string, options ...kubernetes.ApplyOption) error {
	with := &kubernetes.ApplyOptions{}
	for _, option := range options {
		option.MutateApplyOptions(with)
	}
	release, err := a.RenderEmbeddedFS(files, path, name, namespace, with.Values)
	if err != nil {
		return err
	}
	a.manifest.WriteString("\n---\n")
	a.manifest.Write(release.Manifest())
	return nil
}

func (a *applied) DeleteFromEmbeddedFS(context.Context, embed.FS, string, string, string, ...kubernetes.DeleteOption) error {
	return unanswered{errors.New("nothing is deleted")}
}

func (a *applied) ApplyFromArchive(context.Context, []byte, string, string, ...kubernetes.ApplyOption) error {
	return unanswered{errors.New("the charts are embedded")}
}

func (a *applied) DeleteFromArchive(context.Context, []byte, string, string, ...kubernetes.DeleteOption) error {
	return unanswered{errors.New("the charts are embedded")}
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
