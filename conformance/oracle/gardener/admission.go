package main

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
	operatorclient "github.com/gardener/gardener/pkg/operator/client"
	extensiondefaulting "github.com/gardener/gardener/pkg/operator/webhook/defaulting/extension"
	gardendefaulting "github.com/gardener/gardener/pkg/operator/webhook/defaulting/garden"
	extensionvalidation "github.com/gardener/gardener/pkg/operator/webhook/validation/extension"
	gardenvalidation "github.com/gardener/gardener/pkg/operator/webhook/validation/garden"
)

// admitted judges the creation or update of a Garden or an Extension as an API server does: with the
// defaults and rules of the CRD, and with the operator's webhooks. Extensions exist beside it.
func admitted(input json.RawMessage) (any, error) {
	var in struct {
		Object     map[string]any               `json:"object"`
		Old        map[string]any               `json:"old"`
		Extensions []operatorv1alpha1.Extension `json:"extensions"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	kind, err := kindOf(in.Object, in.Extensions)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{Object: in.Object}
	if in.Old == nil {
		return verdictOf(kind.judge(obj, nil))
	}
	old := &unstructured.Unstructured{Object: in.Old}
	if err := kind.store(old, in.Extensions); err != nil {
		return nil, err
	}
	return verdictOf(kind.judge(obj, old))
}

func verdictOf(problems []refusal, err error) (any, error) {
	return map[string]any{"refusals": problems}, err
}

// operatorKind is one of the kinds that the operator's webhooks handle.
type operatorKind struct {
	definition definition
	defaulting *admission.Webhook
	validation *admission.Webhook
}

func kindOf(obj map[string]any, extensions []operatorv1alpha1.Extension) (operatorKind, error) {
	scheme := operatorclient.RuntimeScheme
	switch obj["kind"] {
	case "Garden":
		definition, err := definitionOf(operatorDefinitions + "/crd-gardens.yaml")
		return operatorKind{
			definition: definition,
			defaulting: admission.WithCustomDefaulter(scheme, &operatorv1alpha1.Garden{}, &gardendefaulting.Handler{}),
			validation: admission.WithCustomValidator(scheme, &operatorv1alpha1.Garden{}, &gardenvalidation.Handler{RuntimeClient: clusterWith(extensions)}),
		}, err
	case "Extension":
		definition, err := definitionOf(operatorDefinitions + "/crd-extensions.yaml")
		return operatorKind{
			definition: definition,
			defaulting: &admission.Webhook{Handler: &extensiondefaulting.Handler{Decoder: admission.NewDecoder(scheme)}},
			validation: admission.WithCustomValidator(scheme, &operatorv1alpha1.Extension{}, &extensionvalidation.Handler{}),
		}, err
	}
	return operatorKind{}, unanswered{fmt.Errorf("the operator admits no %s", obj["kind"])}
}

func clusterWith(extensions []operatorv1alpha1.Extension) client.Client {
	builder := fake.NewClientBuilder().WithScheme(operatorclient.RuntimeScheme)
	for _, each := range extensions {
		builder.WithObjects(&each)
	}
	return builder.Build()
}

// stored are the results of store, which is slow, for the few objects that are often asked about.
var stored = map[string]stowed{}

type stowed struct {
	object map[string]any
	err    error
}

// store sets the defaults of an object, unless an API server would not have stored it.
func (k operatorKind) store(obj *unstructured.Unstructured, extensions []operatorv1alpha1.Extension) error {
	key, err := json.Marshal([]any{obj.Object, extensions})
	if err != nil {
		return err
	}
	if found, ok := stored[string(key)]; ok {
		obj.Object = runtime.DeepCopyJSON(found.object)
		return found.err
	}
	problems, err := k.judge(obj, obj.DeepCopy())
	// An update may keep values that the schema forbids.
	problems = append(problems, refusals(k.definition.problems(obj, nil))...)
	if err == nil && len(problems) > 0 {
		err = unanswered{fmt.Errorf("the old object cannot be stored: %s: %s", problems[0].Field, problems[0].Detail)}
	}
	if len(stored) > 100 {
		clear(stored)
	}
	stored[string(key)] = stowed{runtime.DeepCopyJSON(obj.Object), err}
	return err
}

// judge sets the defaults of an object, and returns why it is refused.
func (k operatorKind) judge(obj, old *unstructured.Unstructured) ([]refusal, error) {
	k.definition.setDefaults(obj)
	problems, patch, err := reviewed(k.defaulting, obj, old)
	if err != nil || len(problems) > 0 {
		return problems, err
	}
	if err := apply(patch, obj); err != nil {
		return nil, err
	}
	k.definition.setDefaults(obj)
	if problems := k.definition.problems(obj, old); len(problems) > 0 {
		return refusals(problems), nil
	}
	problems, _, err = reviewed(k.validation, obj, old)
	return problems, err
}

// reviewed asks a webhook, and returns its refusal and its patch.
func reviewed(webhook *admission.Webhook, obj, old *unstructured.Unstructured) ([]refusal, []byte, error) {
	webhook = webhook.WithRecoverPanic(true)
	gvk := obj.GroupVersionKind()
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID:       "1",
		Kind:      metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		Operation: admissionv1.Create,
		Name:      obj.GetName(),
		DryRun:    ptr.To(false),
	}}
	var err error
	if request.Object.Raw, err = json.Marshal(obj.Object); err != nil {
		return nil, nil, err
	}
	if old != nil {
		request.Operation = admissionv1.Update
		if request.OldObject.Raw, err = json.Marshal(old.Object); err != nil {
			return nil, nil, err
		}
	}
	response := webhook.Handle(context.Background(), request)
	if response.Allowed {
		return []refusal{}, response.Patch, nil
	}
	found := []refusal{}
	if result := response.Result; result != nil {
		if result.Details != nil {
			for _, cause := range result.Details.Causes {
				found = append(found, refusal{string(cause.Type), cause.Field, cause.Message})
			}
		}
		if len(found) == 0 {
			found = append(found, refusal{Type: string(result.Reason), Detail: result.Message})
		}
	}
	return found, nil, nil
}

func apply(patch []byte, obj *unstructured.Unstructured) error {
	if len(patch) == 0 {
		return nil
	}
	changes, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return err
	}
	text, err := json.Marshal(obj.Object)
	if err != nil {
		return err
	}
	if text, err = changes.Apply(text); err != nil {
		return err
	}
	// Unlike encoding/json, this keeps integers.
	decoded, err := runtime.Decode(unstructured.UnstructuredJSONScheme, text)
	if err != nil {
		return err
	}
	obj.Object = decoded.(*unstructured.Unstructured).Object
	return nil
}
