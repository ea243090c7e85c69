package main

import (
	"context"
	"os"
	"path/filepath"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apimachineryruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// The folders of the original's CRDs, next to the program.
const (
	operatorDefinitions        = "gardener-crds"
	resourceManagerDefinitions = "gardener-resource-crds"
)

// definition holds the rules that an API server derives from a CRD.
type definition struct {
	structural *structuralschema.Structural
	strategy   interface {
		Validate(context.Context, apimachineryruntime.Object) field.ErrorList
		ValidateUpdate(context.Context, apimachineryruntime.Object, apimachineryruntime.Object) field.ErrorList
	}
}

// known are the definitions that were read, by file.
var known = map[string]definition{}

// definitionOf reads a CRD with one version.
func definitionOf(file string) (definition, error) {
	if found, ok := known[file]; ok {
		return found, nil
	}
	program, err := os.Executable()
	if err != nil {
		return definition{}, err
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(program), file))
	if err != nil {
		return definition{}, unanswered{err}
	}
	external, crd := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.CustomResourceDefinition{}
	if err := yaml.Unmarshal(text, external); err != nil {
		return definition{}, unanswered{err}
	}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(external, crd, nil); err != nil {
		return definition{}, unanswered{err}
	}
	kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.Kind}
	served, err := apiextensions.GetSchemaForVersion(crd, kind.Version)
	if err != nil {
		return definition{}, unanswered{err}
	}
	structural, err := structuralschema.NewStructural(served.OpenAPIV3Schema)
	if err != nil {
		return definition{}, unanswered{err}
	}
	validator, _, err := validation.NewSchemaValidator(served.OpenAPIV3Schema)
	if err != nil {
		return definition{}, unanswered{err}
	}
	found := definition{
		structural: structural,
		strategy: customresource.NewStrategy(
			nil, crd.Spec.Scope == apiextensions.NamespaceScoped, kind, validator, nil, structural, &apiextensions.CustomResourceSubresourceStatus{}, nil, nil),
	}
	known[file] = found
	return found, nil
}

// setDefaults prunes an object and sets its defaults, as an API server does when it reads one.
func (d definition) setDefaults(obj *unstructured.Unstructured) {
	pruning.Prune(obj.Object, d.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj.Object, d.structural)
	defaulting.Default(obj.Object, d.structural)
}

// problems returns why the CRD's schema and rules forbid an object; old is nil for a new one.
func (d definition) problems(obj, old *unstructured.Unstructured) field.ErrorList {
	if old == nil {
		return d.strategy.Validate(context.Background(), obj)
	}
	// The registry does the same, because it bases the update on the stored object.
	obj.SetResourceVersion("1")
	old.SetResourceVersion("1")
	return d.strategy.ValidateUpdate(context.Background(), obj, old)
}
