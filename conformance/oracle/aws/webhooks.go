package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	druidcorev1alpha1 "github.com/gardener/etcd-druid/api/core/v1alpha1"
	extensionswebhook "github.com/gardener/gardener/extensions/pkg/webhook"
	genericcloudprovider "github.com/gardener/gardener/extensions/pkg/webhook/cloudprovider"
	"github.com/gardener/gardener/extensions/pkg/webhook/controlplane/genericmutator"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/kubelet"
	oscutils "github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/utils"
	pvcautoscalingv1alpha1 "github.com/gardener/pvc-autoscaler/api/autoscaling/v1alpha1"
	"github.com/go-logr/logr"
	createpatch "gomodules.xyz/jsonpatch/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	vpaautoscalingv1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener/gardener-extension-provider-aws/pkg/apis/config"
	"github.com/gardener/gardener-extension-provider-aws/pkg/webhook/cloudprovider"
	webhookcontrolplane "github.com/gardener/gardener-extension-provider-aws/pkg/webhook/controlplane"
	"github.com/gardener/gardener-extension-provider-aws/pkg/webhook/pvca"
	"github.com/gardener/gardener-extension-provider-aws/pkg/webhook/seedprovider"
	"github.com/gardener/gardener-extension-provider-aws/pkg/webhook/shootconfigmap"
	"github.com/gardener/gardener-extension-provider-aws/pkg/webhook/shootservice"
)

func init() {
	utilruntime.Must(appsv1.AddToScheme(scheme))
	utilruntime.Must(vpaautoscalingv1.AddToScheme(scheme))
	utilruntime.Must(druidcorev1alpha1.AddToScheme(scheme))
	utilruntime.Must(pvcautoscalingv1alpha1.AddToScheme(scheme))
}

type webhookQuestion struct {
	Webhook  string          `json:"webhook"`
	Object   json.RawMessage `json:"object"`
	Old      json.RawMessage `json:"old"`
	Cluster  json.RawMessage `json:"cluster"`
	Secret   json.RawMessage `json:"secret"`
	Families []string        `json:"families"`
	Etcd     struct {
		ClassName *string `json:"className"`
		Capacity  *string `json:"capacity"`
	} `json:"etcd"`
}

// webhooks returns an object as a webhook changes it.
func webhooks(input json.RawMessage) (any, error) {
	var in webhookQuestion
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	obj, err := object(in.Object)
	if err != nil {
		return nil, err
	}
	var old client.Object
	if !isAbsent(in.Old) {
		if old, err = object(in.Old); err != nil {
			return nil, err
		}
	}
	mutator, ctx, err := mutatorOf(in)
	if err != nil {
		return nil, err
	}
	after, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return nil, unanswered{fmt.Errorf("%T is not an object", obj)}
	}
	if err := mutator.Mutate(ctx, after, old); err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(obj, after) {
		return in.Object, nil
	}
	return patched(in.Object, obj, after)
}

// patched returns the raw object with the patch that a webhook server sends.
func patched(raw json.RawMessage, before, after client.Object) (json.RawMessage, error) {
	one, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	other, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	operations, err := createpatch.CreatePatch(one, other)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		return nil, unanswered{err}
	}
	options := jsonpatch.NewApplyOptions()
	options.EnsurePathExistsOnAdd = true
	found, err := patch.ApplyWithOptions(raw, options)
	if err != nil {
		return nil, unanswered{fmt.Errorf("the patch does not fit: %w", err)}
	}
	return found, nil
}

// mutatorOf returns the mutator of a webhook, with the clusters that it reads.
func mutatorOf(in webhookQuestion) (extensionswebhook.Mutator, context.Context, error) {
	objects := []json.RawMessage{in.Cluster}
	if !isAbsent(in.Secret) {
		objects = append(objects, in.Secret)
	}
	seed, err := clusterOf(objects)
	if err != nil {
		return nil, nil, err
	}
	mgr, log, ctx := process{objects: seed}, logr.Discard(), context.Background()
	switch in.Webhook {
	case "controlplane":
		codec := oscutils.NewFileContentInlineCodec()
		ensurer := webhookcontrolplane.NewEnsurer(log, seed)
		return genericmutator.NewMutator(mgr, ensurer, oscutils.NewUnitSerializer(), kubelet.NewConfigCodec(codec), codec, log), ctx, nil
	case "cloudprovider":
		return genericcloudprovider.NewMutator(mgr, log, cloudprovider.NewEnsurer(log)), ctx, nil
	case "seed-pvca":
		return pvca.NewMutator(log), ctx, nil
	case "seedprovider":
		storage := &config.ETCDStorage{ClassName: in.Etcd.ClassName}
		if in.Etcd.Capacity != nil {
			capacity, err := resource.ParseQuantity(*in.Etcd.Capacity)
			if err != nil {
				return nil, nil, unanswered{err}
			}
			storage.Capacity = &capacity
		}
		return genericmutator.NewMutator(mgr, seedprovider.NewEnsurer(storage, log), nil, nil, nil, log), ctx, nil
	case "shoot-configmap":
		return shootconfigmap.NewMutator(log), ctx, nil
	case "shoot-service":
		dns := &corev1.Service{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: metav1.ObjectMeta{Name: "kube-dns", Namespace: metav1.NamespaceSystem},
		}
		for _, family := range in.Families {
			dns.Spec.IPFamilies = append(dns.Spec.IPFamilies, corev1.IPFamily(family))
		}
		raw, err := json.Marshal(dns)
		if err != nil {
			return nil, nil, err
		}
		shoot, err := clusterOf([]json.RawMessage{raw})
		if err != nil {
			return nil, nil, err
		}
		return shootservice.NewMutatorWithShootClient(log), context.WithValue(ctx, extensionswebhook.ShootClientContextKey{}, client.Client(shoot)), nil
	default:
		return nil, nil, unanswered{errors.New("there is no webhook " + in.Webhook)}
	}
}
