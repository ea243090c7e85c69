// Command oracle answers questions about Argo CD with its own libraries.
//
// It reads a question per line, {"ask": NAME, "input": VALUE}, and writes an answer per line; see
// protocol.go. An answer depends on its question alone.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/gitops-engine/pkg/health"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := serve(map[string]ask{"argocd-health": assess}, "github.com/argoproj/argo-cd/v3"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// assess returns the health of an object by a user's rules, the text of resource.customizations.
func assess(input json.RawMessage) (any, error) {
	var asked struct {
		Object         map[string]any `json:"object"`
		Customizations string         `json:"customizations"`
	}
	if err := decode(input, &asked); err != nil {
		return nil, err
	}
	overrides := map[string]v1alpha1.ResourceOverride{}
	if err := yaml.Unmarshal([]byte(asked.Customizations), &overrides); err != nil {
		return nil, fmt.Errorf("resource.customizations: %w", err)
	}
	object := &unstructured.Unstructured{}
	text, err := json.Marshal(asked.Object)
	if err != nil {
		return nil, unanswered{err}
	}
	// Numbers become int64, as they are in an object that a client reads.
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, unanswered{err}
	}
	found, err := health.GetResourceHealth(object, lua.ResourceHealthOverrides(overrides))
	if err != nil {
		return nil, err
	}
	if found == nil {
		return map[string]string{"status": "", "message": ""}, nil
	}
	return map[string]string{"status": string(found.Status), "message": found.Message}, nil
}
