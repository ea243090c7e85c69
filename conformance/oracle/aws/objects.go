package main

import (
	"encoding/json"
	"errors"
	"fmt"

	coreinstall "github.com/gardener/gardener/pkg/apis/core/install"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	securityinstall "github.com/gardener/gardener/pkg/apis/security/install"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener/gardener/extensions/pkg/util"

	awsinstall "github.com/gardener/gardener-extension-provider-aws/pkg/apis/aws/install"
)

// The scheme of the admission process, and the decoders that its webhooks use.
var (
	scheme = func() *runtime.Scheme {
		scheme := runtime.NewScheme()
		coreinstall.Install(scheme)
		securityinstall.Install(scheme)
		for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, extensionsv1alpha1.AddToScheme, awsinstall.AddToScheme} {
			if err := add(scheme); err != nil {
				panic(err)
			}
		}
		return scheme
	}()
	strict  = serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
	lenient = serializer.NewCodecFactory(scheme).UniversalDecoder()
)

// verdict is the answer of a validation.
type verdict struct {
	Refused []refusal `json:"refused"`
}

// refusedBy returns the verdict of a function that returns an error, or several in one.
func refusedBy(err error) verdict {
	return verdict{refusals(fieldErrors(err))}
}

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

// read decodes a provider's config as the original does; an error of that is a refusal.
func read(decoder runtime.Decoder, raw json.RawMessage, into runtime.Object, path *field.Path) field.ErrorList {
	if err := util.Decode(decoder, raw, into); err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	return nil
}

// isAbsent returns whether a part of a question is missing or null, which JSON does not tell apart.
func isAbsent(raw json.RawMessage) bool {
	return len(raw) == 0 || string(raw) == "null"
}

// extension returns a raw extension as the decoder of its object would.
func extension(raw json.RawMessage) (*runtime.RawExtension, error) {
	if isAbsent(raw) {
		return nil, nil
	}
	found := &runtime.RawExtension{}
	if err := found.UnmarshalJSON(raw); err != nil {
		return nil, unanswered{fmt.Errorf("cannot read the config: %w", err)}
	}
	return found, nil
}
