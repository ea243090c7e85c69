package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardener/gardener/pkg/controller/tokenrequestor"
)

// tokenRequests lets the TokenRequestor handle a Secret once, without jitter, and returns what
// exists in both clusters then.
func tokenRequests(input json.RawMessage) (any, error) {
	var in struct {
		Secret    json.RawMessage   `json:"secret"`
		Target    []json.RawMessage `json:"target"`
		Class     *string           `json:"class"`
		Namespace string            `json:"namespace"` // of all ServiceAccounts
		CA        []byte            `json:"ca"`
		Accepted  bool              `json:"accepted"` // what a TokenReview says
		Longest   int64             `json:"longest"`  // the seconds that a token lives at most
		Now       time.Time         `json:"now"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	obj, err := object(in.Secret)
	if err != nil {
		return nil, err
	}
	source, err := clusterOf([]json.RawMessage{in.Secret})
	if err != nil {
		return nil, err
	}
	target, err := clusterOf(in.Target)
	if err != nil {
		return nil, err
	}
	reviewed := false
	requested := []int64{}
	reconciler := &tokenrequestor.Reconciler{
		SourceClient: source,
		TargetClient: interceptor.NewClient(target, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if review, ok := obj.(*authenticationv1.TokenReview); ok {
					reviewed, review.Status.Authenticated = true, in.Accepted
					return nil
				}
				return c.Create(ctx, obj, opts...)
			},
			SubResourceCreate: func(_ context.Context, _ client.Client, _ string, obj, body client.Object, _ ...client.SubResourceCreateOption) error {
				request, ok := body.(*authenticationv1.TokenRequest)
				if !ok {
					return unanswered{fmt.Errorf("%T is requested", body)}
				}
				seconds := *request.Spec.ExpirationSeconds
				if seconds < 600 || seconds > 1<<32 {
					return apierrors.NewInvalid(authenticationv1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind(), obj.GetName(), field.ErrorList{field.Invalid(field.NewPath("spec", "expirationSeconds"), seconds, "out of range")})
				}
				requested = append(requested, seconds)
				request.Status.Token = "issued"
				request.Status.ExpirationTimestamp = metav1.NewTime(in.Now.Add(time.Duration(min(seconds, in.Longest)) * time.Second))
				return nil
			},
		}),
		Clock:           testclock.NewFakeClock(in.Now),
		JitterFunc:      func(duration time.Duration, _ float64) time.Duration { return duration },
		Class:           in.Class,
		APIAudiences:    []string{"gardener"},
		CAData:          in.CA,
		TargetNamespace: in.Namespace,
	}
	ctx := context.Background()
	result, failure := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
	answer := map[string]any{
		"failed":    failure != nil,
		"again":     result.RequeueAfter.Seconds(),
		"requested": requested,
		"reviewed":  reviewed,
	}
	if failure != nil {
		answer["why"] = failure.Error()
	}
	secrets, targets, accounts := &corev1.SecretList{}, &corev1.SecretList{}, &corev1.ServiceAccountList{}
	for list, c := range map[client.ObjectList]client.Client{secrets: source, targets: target, accounts: target} {
		if err := c.List(ctx, list); err != nil {
			return nil, err
		}
	}
	answer["secrets"], answer["targets"], answer["accounts"] = secrets.Items, targets.Items, accounts.Items
	return answer, nil
}
