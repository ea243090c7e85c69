package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/version"
	fakeclientset "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/featuregate"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	operatorconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/operator/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	fakeclientmap "github.com/gardener/gardener/pkg/client/kubernetes/clientmap/fake"
	"github.com/gardener/gardener/pkg/client/kubernetes/clientmap/keys"
	fakekubernetes "github.com/gardener/gardener/pkg/client/kubernetes/fake"
	resourcemanager "github.com/gardener/gardener/pkg/component/gardener/resourcemanager"
	kubeapiserver "github.com/gardener/gardener/pkg/component/kubernetes/apiserver"
	kubecontrollermanager "github.com/gardener/gardener/pkg/component/kubernetes/controllermanager"
	"github.com/gardener/gardener/pkg/features"
	operatorclient "github.com/gardener/gardener/pkg/operator/client"
	"github.com/gardener/gardener/pkg/operator/controller/garden/garden"
	operatorfeatures "github.com/gardener/gardener/pkg/operator/features"
	"github.com/gardener/gardener/pkg/utils/retry"
	secretsutils "github.com/gardener/gardener/pkg/utils/secrets"
)

// runtimeVersion is the version of Kubernetes of the cluster in which a Garden runs.
const runtimeVersion = "1.34.0"

// origin marks the objects that a resource manager applied.
const origin = "resources.gardener.cloud/origin"

// prepare registers the operator's feature gates, and replaces slow generation of keys.
var prepare = sync.OnceFunc(func() {
	operatorfeatures.RegisterFeatureGates()
	secretsutils.GenerateKey = secretsutils.FakeGenerateKey
	// There are no pods to wait for.
	atOnce := func(context.Context, time.Duration, retry.Func) error { return nil }
	kubeapiserver.Until, kubecontrollermanager.Until, resourcemanager.Until = atOnce, atOnce, atOnce
})

// gardenInput is a Garden with everything that its reconciliation depends on.
type gardenInput struct {
	Garden       map[string]any   `json:"garden"`
	Beside       []map[string]any `json:"beside"`
	FeatureGates map[string]bool  `json:"featureGates"`
	Now          time.Time        `json:"now"`
}

// gardenRun is the original's reconciler in clusters where everything is ready at once.
type gardenRun struct {
	garden     *operatorv1alpha1.Garden
	reconciler *garden.Reconciler
	site       client.Client
	undo       func()
}

// prepared stores the Garden, and returns what reconciles it.
func (in *gardenInput) prepared(alter func(*operatorv1alpha1.Garden)) (*gardenRun, error) {
	prepare()
	defaults, err := setFeatureGates(in.FeatureGates)
	if err != nil {
		return nil, unanswered{err}
	}
	run, err := in.stored(alter)
	if err != nil {
		defaults()
		return nil, err
	}
	run.undo = defaults
	return run, nil
}

func (in *gardenInput) stored(alter func(*operatorv1alpha1.Garden)) (*gardenRun, error) {
	wanted, err := admittedGarden(in.Garden, in.Beside)
	if err != nil {
		return nil, err
	}
	alter(wanted)
	virtual := readyCluster(operatorclient.VirtualScheme, nil, namespace("garden"))
	site := readyCluster(operatorclient.RuntimeScheme, virtual, wanted, namespace("kube-system"), namespace("garden"))
	for _, each := range in.Beside {
		obj := &unstructured.Unstructured{Object: each}
		if err := site.Create(context.Background(), obj); err != nil {
			return nil, unanswered{fmt.Errorf("cannot create %s: %w", obj.GetName(), err)}
		}
	}
	config := &operatorconfigv1alpha1.OperatorConfiguration{}
	operatorconfigv1alpha1.SetObjectDefaults_OperatorConfiguration(config)
	reconciler := &garden.Reconciler{
		RuntimeClientSet: clientSet(site),
		RuntimeVersion:   semver.MustParse(runtimeVersion),
		Config:           *config,
		Clock:            testclock.NewFakeClock(in.Now),
		Recorder:         events.NewFakeRecorder(1000),
		Identity:         &gardencorev1beta1.Gardener{Name: "oracle"},
		GardenNamespace:  "garden",
		GardenClientMap: fakeclientmap.NewClientMapBuilder().
			WithClientSetForKey(keys.ForGarden(wanted), clientSet(virtual)).Build(),
	}
	return &gardenRun{garden: wanted, reconciler: reconciler, site: site}, nil
}

// gardenMade reconciles a Garden, and returns every object that exists then.
func gardenMade(input json.RawMessage) (any, error) {
	var in gardenInput
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	run, err := in.prepared(func(*operatorv1alpha1.Garden) {})
	if err != nil {
		return nil, err
	}
	defer run.undo()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(run.garden)}
	if _, err := run.reconciler.Reconcile(ctx, request); err != nil {
		return nil, err
	}
	return everything(run.site)
}

// setFeatureGates sets feature gates of the operator, and returns a function that undoes it.
func setFeatureGates(wanted map[string]bool) (func(), error) {
	before := map[string]bool{}
	for name := range wanted {
		before[name] = features.DefaultFeatureGate.Enabled(featuregate.Feature(name))
	}
	undo := func() { _ = features.DefaultFeatureGate.SetFromMap(before) }
	err := features.DefaultFeatureGate.SetFromMap(wanted)
	if err != nil {
		undo()
	}
	return undo, err
}

// rotations starts the reconciliation of a Garden, and returns what its status says then.
func rotations(input json.RawMessage) (any, error) {
	var in struct {
		Garden map[string]any `json:"garden"`
		Now    time.Time      `json:"now"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	wanted, err := admittedGarden(in.Garden, nil)
	if err != nil {
		return nil, err
	}
	site := interceptor.NewClient(readyCluster(operatorclient.RuntimeScheme, nil, wanted), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*corev1.SecretList); ok {
				return errors.New("this is enough")
			}
			return c.List(ctx, list, options...)
		},
	})
	reconciler := &garden.Reconciler{RuntimeClientSet: clientSet(site), Clock: testclock.NewFakeClock(in.Now)}
	_, _ = reconciler.Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(wanted)})
	found := &operatorv1alpha1.Garden{}
	if err := site.Get(context.Background(), client.ObjectKeyFromObject(wanted), found); err != nil {
		return nil, err
	}
	return map[string]any{
		"advertisedAddresses": found.Status.AdvertisedAddresses,
		"credentials":         found.Status.Credentials,
		"operation":           found.Annotations[operation],
	}, nil
}

// admittedGarden returns a Garden as an API server stores it, with all defaults.
func admittedGarden(written map[string]any, beside []map[string]any) (*operatorv1alpha1.Garden, error) {
	var extensions []operatorv1alpha1.Extension
	for _, each := range beside {
		if each["kind"] == "Extension" {
			var extension operatorv1alpha1.Extension
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(each, &extension); err != nil {
				return nil, unanswered{err}
			}
			extensions = append(extensions, extension)
		}
	}
	kind, err := kindOf(written, extensions)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{Object: written}
	problems, err := kind.judge(obj, nil)
	if err == nil && len(problems) > 0 {
		err = unanswered{fmt.Errorf("the Garden is refused: %s: %s", problems[0].Field, problems[0].Detail)}
	}
	if err != nil {
		return nil, err
	}
	garden := &operatorv1alpha1.Garden{}
	return garden, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, garden)
}

func clientSet(c client.Client) kubernetes.Interface {
	renderer := chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v" + runtimeVersion})
	applier := kubernetes.NewApplier(c, c.RESTMapper())
	return fakekubernetes.NewClientSetBuilder().
		WithClient(c).
		WithAPIReader(c).
		WithKubernetes(fakeclientset.NewClientset()).
		WithApplier(applier).
		WithChartRenderer(renderer).
		WithChartApplier(kubernetes.NewChartApplier(renderer, applier)).
		WithRESTConfig(&rest.Config{}).
		WithVersion("v" + runtimeVersion).
		Build()
}

// readyCluster returns a client for a cluster whose objects are seen as ready, whatever is stored.
// The objects of its ManagedResources are created in it, or in the target.
func readyCluster(scheme *runtime.Scheme, target client.Client, objects ...client.Object) client.WithWatch {
	seen := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, obj, options...)
			if err == nil {
				makeReady(obj)
			}
			return err
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := c.List(ctx, list, options...); err != nil {
				return err
			}
			return meta.EachListItem(list, func(item runtime.Object) error {
				if obj, ok := item.(client.Object); ok {
					makeReady(obj)
				}
				return nil
			})
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, options ...client.CreateOption) error {
			err := c.Create(ctx, obj, options...)
			if resource, ok := obj.(*resourcesv1alpha1.ManagedResource); ok && err == nil {
				into := target
				if resource.Spec.Class != nil {
					into = c
				}
				return createObjects(ctx, resource, c, into)
			}
			return err
		},
	}
	// The default tracker makes a mapper of all kinds for each new object.
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	return fake.NewClientBuilder().
		WithScheme(scheme).
		WithObjectTracker(tracker).
		WithRESTMapper(restMapper(scheme)).
		WithObjects(objects...).
		WithStatusSubresource(objects...).
		WithInterceptorFuncs(seen).
		Build()
}

var mappers = map[*runtime.Scheme]meta.RESTMapper{}

// restMapper returns a mapper of all kinds of a scheme; making one takes a while.
func restMapper(scheme *runtime.Scheme) meta.RESTMapper {
	if _, ok := mappers[scheme]; !ok {
		mappers[scheme] = testrestmapper.TestOnlyStaticRESTMapper(scheme)
	}
	return mappers[scheme]
}

// createObjects creates the objects of a ManagedResource.
func createObjects(ctx context.Context, resource *resourcesv1alpha1.ManagedResource, from, into client.Client) error {
	objects, err := contents(ctx, resource, from)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		obj.SetAnnotations(map[string]string{origin: resource.Name})
		if obj.GetKind() == "Service" {
			if err := unstructured.SetNestedField(obj.Object, "192.0.2.1", "spec", "clusterIP"); err != nil {
				return err
			}
		}
		if err := into.Create(ctx, obj); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	return nil
}

// contents returns the objects in the Secrets of a ManagedResource.
func contents(ctx context.Context, resource *resourcesv1alpha1.ManagedResource, from client.Client) ([]*unstructured.Unstructured, error) {
	found := []*unstructured.Unstructured{}
	for _, reference := range resource.Spec.SecretRefs {
		secret := &corev1.Secret{}
		if err := from.Get(ctx, client.ObjectKey{Namespace: resource.Namespace, Name: reference.Name}, secret); err != nil {
			return nil, err
		}
		for key, value := range secret.Data {
			objects, err := documents(key, value)
			if err != nil {
				return nil, err
			}
			for _, obj := range objects {
				found = append(found, &unstructured.Unstructured{Object: obj.(map[string]any)})
			}
		}
	}
	return found, nil
}

func namespace(name string) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// made is an object that the operator applied, or put into a ManagedResource for a cluster.
type made struct {
	ManagedResource string         `json:"managedResource,omitempty"`
	Virtual         bool           `json:"virtual,omitempty"`
	Object          map[string]any `json:"object"`
}

// everything returns all objects that the operator made in the runtime cluster, or for another.
func everything(c client.Client) ([]made, error) {
	found := []made{}
	for gvk := range c.Scheme().AllKnownTypes() {
		if !strings.HasSuffix(gvk.Kind, "List") {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := c.List(context.Background(), list); err != nil {
			continue // a kind that is only a list
		}
		for _, item := range list.Items {
			if _, applied := item.GetAnnotations()[origin]; !applied {
				found = append(found, made{Object: shortened(item.Object)})
			}
		}
	}
	resources := &resourcesv1alpha1.ManagedResourceList{}
	if err := c.List(context.Background(), resources); err != nil {
		return nil, err
	}
	for _, resource := range resources.Items {
		objects, err := contents(context.Background(), &resource, c)
		if err != nil {
			return nil, err
		}
		for _, obj := range objects {
			found = append(found, made{resource.Name, resource.Spec.Class == nil, shortened(obj.Object)})
		}
	}
	slices.SortFunc(found, func(one, other made) int { return strings.Compare(one.key(), other.key()) })
	return found, nil
}

func (m made) key() string {
	obj := unstructured.Unstructured{Object: m.Object}
	return strings.Join([]string{m.ManagedResource, obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName()}, " ")
}

// shortened leaves out what is never compared: schemas, dashboards, and values of Secrets.
func shortened(obj map[string]any) map[string]any {
	switch obj["kind"] {
	case "CustomResourceDefinition":
		versions, _, _ := unstructured.NestedSlice(obj, "spec", "versions")
		for _, version := range versions {
			delete(version.(map[string]any), "schema")
		}
		_ = unstructured.SetNestedSlice(obj, versions, "spec", "versions")
	case "Secret":
		for _, field := range []string{"data", "stringData"} {
			values, _, _ := unstructured.NestedMap(obj, field)
			for key := range values {
				_ = unstructured.SetNestedField(obj, "", field, key)
			}
		}
	case "ConfigMap":
		values, _, _ := unstructured.NestedStringMap(obj, "data")
		for key := range values {
			if strings.HasSuffix(key, ".json") && strings.Contains(values[key], `"panels"`) {
				_ = unstructured.SetNestedField(obj, "{}", "data", key)
			}
		}
	}
	delete(obj, "status")
	return obj
}
