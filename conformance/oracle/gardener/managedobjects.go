package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/managedresource"
	resourcemanagerpredicate "github.com/gardener/gardener/pkg/resourcemanager/predicate"
)

// clusterScoped are the kinds without namespace that questions contain.
var clusterScoped = sets.New("Namespace", "Node", "PersistentVolume", "ClusterRole", "PriorityClass", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")

// managedObjects reconciles a ManagedResource until nothing changes, and returns what exists then.
func managedObjects(input json.RawMessage) (any, error) {
	var in struct {
		Resource  json.RawMessage   `json:"resource"`
		Manifests []json.RawMessage `json:"manifests"`
		Target    []json.RawMessage `json:"target"`
		Refused   []string          `json:"refused"`   // the names of objects that cannot be updated
		Collected bool              `json:"collected"` // the garbage collector runs
		ClusterID string            `json:"clusterID"`
		Now       time.Time         `json:"now"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	obj, err := object(in.Resource)
	if err != nil {
		return nil, err
	}
	resource, ok := obj.(*resourcesv1alpha1.ManagedResource)
	if !ok {
		return nil, unanswered{fmt.Errorf("%T is not a ManagedResource", obj)}
	}
	manifests, err := json.Marshal(manifestsSecret(resource, in.Manifests))
	if err != nil {
		return nil, err
	}
	source, err := clusterOf([]json.RawMessage{in.Resource, manifests})
	if err != nil {
		return nil, err
	}
	objects, err := clusterOf(in.Target)
	if err != nil {
		return nil, err
	}
	propagations := map[string]string{}
	reconciler := &managedresource.Reconciler{
		SourceClient:     source,
		TargetClient:     interceptor.NewClient(objects, serverRules(in.Refused, propagations)),
		TargetScheme:     scheme,
		TargetRESTMapper: served,
		Config: resourcemanagerconfigv1alpha1.ManagedResourceControllerConfig{
			SyncPeriod:          &metav1.Duration{Duration: time.Minute},
			ManagedByLabelValue: new("gardener"),
		},
		Clock:                         testclock.NewFakeClock(in.Now),
		ClassFilter:                   resourcemanagerpredicate.NewClassFilter(""),
		ClusterID:                     in.ClusterID,
		GarbageCollectorActivated:     in.Collected,
		RequeueAfterOnDeletionPending: new(5 * time.Second),
	}
	ctx, key := context.Background(), client.ObjectKeyFromObject(resource)
	failure := error(nil)
	for range 4 {
		if _, failure = reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: key}); apierrors.IsConflict(failure) {
			return nil, unanswered{failure}
		}
	}
	found, err := present(ctx, objects, append(in.Target, in.Manifests...))
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"objects": found, "propagations": propagations, "failed": failure != nil}
	if failure != nil {
		answer["why"] = failure.Error()
	}
	written := &resourcesv1alpha1.ManagedResource{}
	switch err := source.Get(ctx, key, written); {
	case apierrors.IsNotFound(err):
		answer["gone"] = true
	case err != nil:
		return nil, err
	default:
		answer["resources"] = written.Status.Resources
		for _, condition := range written.Status.Conditions {
			if condition.Type == resourcesv1alpha1.ResourcesApplied {
				answer["applied"] = string(condition.Status) + " " + condition.Reason
				answer["message"] = condition.Message
			}
		}
	}
	return answer, nil
}

// manifestsSecret returns the Secret that the ManagedResource refers to, a manifest per key.
func manifestsSecret(resource *resourcesv1alpha1.ManagedResource, manifests []json.RawMessage) *corev1.Secret {
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "manifests", Namespace: resource.Namespace},
		Data:       map[string][]byte{},
	}
	for number, manifest := range manifests {
		secret.Data[strconv.Itoa(number)+".yaml"] = manifest
	}
	return secret
}

// served is what the target cluster serves: all kinds of the scheme.
var served = mapper()

// mapper knows which kinds of the scheme have a namespace.
func mapper() meta.RESTMapper {
	found := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if clusterScoped.Has(kind.Kind) {
			scope = meta.RESTScopeRoot
		}
		found.Add(kind, scope)
	}
	return found
}

// serverRules are rules of an API server that a fake one lacks: immutable content stays as it is,
// and so do objects of some names. The propagations of first deletions are noted by name.
func serverRules(refused []string, propagations map[string]string) interceptor.Funcs {
	names := sets.New(refused...)
	return interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			kind := obj.GetObjectKind().GroupVersionKind().GroupKind()
			live, changed, err := change(ctx, c, obj)
			if err != nil {
				return err
			}
			isFrozen := kind.Group == "" && (kind.Kind == "ConfigMap" || kind.Kind == "Secret") && live.Object["immutable"] == true
			switch {
			case changed && names.Has(obj.GetName()):
				return apierrors.NewInvalid(kind, obj.GetName(), field.ErrorList{field.Invalid(field.NewPath("spec"), "", "field is immutable")})
			case changed && isFrozen:
				return apierrors.NewInvalid(kind, obj.GetName(), field.ErrorList{field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set")})
			}
			return c.Update(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			options := (&client.DeleteOptions{}).ApplyOptions(opts)
			if options.PropagationPolicy != nil && obj.GetDeletionTimestamp() == nil {
				propagations[obj.GetName()] = string(*options.PropagationPolicy)
			}
			return c.Delete(ctx, obj, opts...)
		},
	}
}

// change returns the live object, and whether an update changes more than its metadata.
func change(ctx context.Context, c client.Client, obj client.Object) (*unstructured.Unstructured, bool, error) {
	desired, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, false, unanswered{fmt.Errorf("%T is updated", obj)}
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(desired.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(obj), live); err != nil {
		return nil, false, err
	}
	before, err := json.Marshal(content(live.Object))
	if err != nil {
		return nil, false, err
	}
	after, err := json.Marshal(content(desired.Object))
	return live, !bytes.Equal(before, after), err
}

// content returns an object without metadata, status and empty values.
func content(obj map[string]any) any {
	found := map[string]any{}
	for name, value := range obj {
		if name != "metadata" && name != "status" {
			found[name] = value
		}
	}
	return withoutEmpty(found)
}

// withoutEmpty returns a value without empty values in maps.
func withoutEmpty(value any) any {
	switch value := value.(type) {
	case map[string]any:
		found := map[string]any{}
		for name, each := range value {
			switch each := withoutEmpty(each).(type) {
			case nil:
			case map[string]any:
				if len(each) > 0 {
					found[name] = each
				}
			case []any:
				if len(each) > 0 {
					found[name] = each
				}
			default:
				found[name] = each
			}
		}
		return found
	case []any:
		found := make([]any, len(value))
		for index, each := range value {
			found[index] = withoutEmpty(each)
		}
		return found
	default:
		return value
	}
}

// present returns the objects of some documents that exist, by kind, namespace and name.
func present(ctx context.Context, c client.Client, documents []json.RawMessage) (map[string]any, error) {
	found := map[string]any{}
	for _, document := range documents {
		obj := &unstructured.Unstructured{}
		if err := json.Unmarshal(document, &obj.Object); err != nil {
			return nil, unanswered{err}
		}
		live, namespace := &unstructured.Unstructured{}, obj.GetNamespace()
		live.SetGroupVersionKind(obj.GroupVersionKind())
		if clusterScoped.Has(obj.GetKind()) {
			namespace = ""
		} else if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: obj.GetName()}, live)
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		found[fmt.Sprintf("%s/%s/%s/%s", live.GroupVersionKind().Group, live.GetKind(), namespace, live.GetName())] = live.Object
	}
	return found, nil
}
