package main

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener/gardener-extension-provider-aws/pkg/aws"
)

// credentials returns the identity and region that the extension reads from a Secret.
func credentials(input json.RawMessage) (any, error) {
	var in struct {
		Data map[string][]byte `json:"data"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	found, err := aws.ReadCredentialsSecret(&corev1.Secret{Data: in.Data}, false, "")
	if err != nil {
		return nil, err
	}
	if found.AccessKey == nil {
		return map[string]any{"role": found.WorkloadIdentity.RoleARN, "region": found.Region}, nil
	}
	return map[string]any{"id": found.AccessKey.ID, "secret": found.AccessKey.Secret, "region": found.Region}, nil
}
