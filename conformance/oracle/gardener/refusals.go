package main

import "k8s.io/apimachinery/pkg/util/validation/field"

// refusal is one error of a validation.
type refusal struct {
	Type   string `json:"type"`
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// refusals returns the errors of a validation; an empty list admits the object.
func refusals(errors field.ErrorList) []refusal {
	found := make([]refusal, 0, len(errors))
	for _, each := range errors {
		found = append(found, refusal{string(each.Type), each.Field, each.ErrorBody()})
	}
	return found
}
