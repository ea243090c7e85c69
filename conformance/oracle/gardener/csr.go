package main

import (
	"context"
	"encoding/json"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/csrapprover"
)

// signingRequest lets the CSR approver decide about a CertificateSigningRequest, and returns the
// condition that it writes; none if it leaves the request alone.
func signingRequest(input json.RawMessage) (any, error) {
	var in struct {
		Request          json.RawMessage   `json:"request"`
		MachineNamespace *string           `json:"machineNamespace"`
		Source           []json.RawMessage `json:"source"`
		Target           []json.RawMessage `json:"target"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	source, err := clusterOf(in.Source)
	if err != nil {
		return nil, err
	}
	target, err := clusterOf(append(in.Target, in.Request))
	if err != nil {
		return nil, err
	}
	obj, err := object(in.Request)
	if err != nil {
		return nil, err
	}
	csr, ok := obj.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return nil, unanswered{fmt.Errorf("%T is not a CertificateSigningRequest", obj)}
	}
	requests := kubernetesfake.NewClientset(csr).CertificatesV1().CertificateSigningRequests()
	reconciler := &csrapprover.Reconciler{
		SourceClient:       source,
		TargetClient:       target,
		CertificatesClient: requests,
		Config:             resourcemanagerconfigv1alpha1.CSRApproverControllerConfig{MachineNamespace: in.MachineNamespace},
	}
	ctx := context.Background()
	if _, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(csr)}); err != nil {
		return nil, err
	}
	written, err := requests.Get(ctx, csr.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	for _, condition := range written.Status.Conditions {
		return map[string]string{"decision": string(condition.Type), "why": condition.Message}, nil
	}
	return map[string]string{"decision": ""}, nil
}
