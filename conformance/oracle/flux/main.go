// Command oracle answers questions about Flux with its own libraries.
//
// It reads a question per line, {"ask": NAME, "input": VALUE}, and writes an answer per line; see
// protocol.go. An answer depends on its question alone.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	asks := map[string]ask{"flux-health": health}
	if err := serve(asks, "github.com/fluxcd/pkg/runtime", "github.com/fluxcd/cli-utils"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// health returns the status of an object without a rule ("generic", by kstatus), and with one.
func health(input json.RawMessage) (any, error) {
	var asked struct {
		Object map[string]any                   `json:"object"`
		Rule   kustomize.HealthCheckExpressions `json:"rule"`
	}
	if err := decode(input, &asked); err != nil {
		return nil, err
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
	generic, err := status.Compute(object)
	if err != nil {
		return nil, fmt.Errorf("generic: %w", err)
	}
	rule, err := cel.NewStatusEvaluator(&asked.Rule)
	if err != nil {
		return nil, fmt.Errorf("rule: %w", err)
	}
	ruled, err := rule.Evaluate(context.Background(), object)
	if err != nil {
		return nil, fmt.Errorf("evaluation: %w", err)
	}
	return map[string]string{"generic": generic.Status.String(), "rule": ruled.Status.String()}, nil
}
