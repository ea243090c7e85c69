package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gardener/gardener/pkg/apis/core"
	coreinstall "github.com/gardener/gardener/pkg/apis/core/install"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener/gardener-extension-networking-calico/pkg/admission/validator"
	calicoinstall "github.com/gardener/gardener-extension-networking-calico/pkg/apis/calico/install"
)

// admissionScheme is the scheme of the admission process.
var admissionScheme = func() *runtime.Scheme {
	found := runtime.NewScheme()
	coreinstall.Install(found)
	utilruntime.Must(calicoinstall.AddToScheme(found))
	return found
}()

var lenient = serializer.NewCodecFactory(admissionScheme).UniversalDecoder()

// networkConfig validates a Shoot with its config of Calico, as the webhook does.
func networkConfig(input json.RawMessage) (any, error) {
	var in struct {
		Shoot json.RawMessage `json:"shoot"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	desired := &core.Shoot{}
	if err := runtime.DecodeInto(lenient, in.Shoot, desired); err != nil {
		return nil, unanswered{fmt.Errorf("cannot read the Shoot: %w", err)}
	}
	err := validator.NewShootValidator(process{}).Validate(context.Background(), desired, nil)
	return map[string]any{"refused": refusals(fieldErrors(err))}, nil
}

// fieldErrors returns the findings in an error; one that has none is a finding without a field.
func fieldErrors(err error) field.ErrorList {
	var (
		one  *field.Error
		many interface{ Errors() []error }
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &one):
		return field.ErrorList{one}
	case errors.As(err, &many):
		var found field.ErrorList
		for _, each := range many.Errors() {
			found = append(found, fieldErrors(each)...)
		}
		return found
	default:
		return field.ErrorList{field.InternalError(nil, err)}
	}
}
