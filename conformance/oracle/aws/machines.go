package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	extensionsworker "github.com/gardener/gardener/extensions/pkg/controller/worker"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsworker "github.com/gardener/gardener-extension-provider-aws/pkg/controller/worker"
)

// machineScheme has the kinds that the delegate of a Worker reads and writes; few, because writes
// of a fake client are slow with many.
var machineScheme = func() *runtime.Scheme {
	found := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(found))
	utilruntime.Must(extensionsv1alpha1.AddToScheme(found))
	utilruntime.Must(machinev1alpha1.AddToScheme(found))
	return found
}()

// machines returns the MachineClasses, their Secrets and the desired MachineDeployments of a Worker.
func machines(input json.RawMessage) (any, error) {
	var in struct {
		Worker  *extensionsv1alpha1.Worker `json:"worker"`
		Cluster json.RawMessage            `json:"cluster"`
		Secrets []corev1.Secret            `json:"secrets"`
		Raw     map[string]string          `json:"rawProviderConfigs"` // by pool
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	ctx, namespace := context.Background(), in.Worker.Namespace
	for i := range in.Worker.Spec.Pools {
		if err := setConfig(&in.Worker.Spec.Pools[i], in.Raw); err != nil {
			return nil, err
		}
	}
	clusters, err := clusterOf([]json.RawMessage{in.Cluster})
	if err != nil {
		return nil, err
	}
	cluster, err := extensionscontroller.GetCluster(ctx, clusters, namespace)
	if err != nil {
		return nil, unanswered{fmt.Errorf("cannot read the cluster: %w", err)}
	}
	builder := fake.NewClientBuilder().WithScheme(machineScheme).WithTypeConverters(converter)
	builder.WithObjects(in.Worker.DeepCopy()).WithStatusSubresource(in.Worker)
	for i := range in.Secrets {
		builder.WithObjects(&in.Secrets[i])
	}
	seed := builder.Build()
	// The fake client compares resource versions.
	if err := seed.Get(ctx, client.ObjectKeyFromObject(in.Worker), &extensionsv1alpha1.Worker{}); err != nil {
		return nil, unanswered{err}
	}
	delegate, err := awsworker.NewWorkerDelegate(seed, strict, scheme, "", in.Worker, cluster)
	if err != nil {
		return nil, err
	}
	deployments, err := delegate.GenerateMachineDeployments(ctx)
	if err != nil {
		return nil, err
	}
	if err := delegate.DeployMachineClasses(ctx); err != nil {
		return nil, err
	}
	if err := delegate.UpdateMachineImagesStatus(ctx); err != nil {
		return nil, err
	}
	return machineObjects(ctx, seed, in.Worker, deployments)
}

// setConfig gives a pool the bytes of its config: those of the question, or as an API server writes
// the value.
func setConfig(pool *extensionsv1alpha1.WorkerPool, raw map[string]string) error {
	if text, ok := raw[pool.Name]; ok {
		pool.ProviderConfig = &runtime.RawExtension{Raw: []byte(text)}
		return nil
	}
	if pool.ProviderConfig == nil {
		return nil
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(pool.ProviderConfig.Raw))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return unanswered{err}
	}
	written, err := json.Marshal(value)
	if err != nil {
		return unanswered{err}
	}
	pool.ProviderConfig.Raw = written
	return nil
}

func machineObjects(ctx context.Context, seed client.Client, worker *extensionsv1alpha1.Worker, deployments extensionsworker.MachineDeployments) (any, error) {
	classes := &machinev1alpha1.MachineClassList{}
	if err := seed.List(ctx, classes); err != nil {
		return nil, err
	}
	secrets := &corev1.SecretList{}
	if err := seed.List(ctx, secrets, client.MatchingLabels{"gardener.cloud/purpose": "machineclass"}); err != nil {
		return nil, err
	}
	found := &extensionsv1alpha1.Worker{}
	if err := seed.Get(ctx, client.ObjectKeyFromObject(worker), found); err != nil {
		return nil, err
	}
	wanted := make([]map[string]any, 0, len(deployments))
	for _, each := range deployments {
		wanted = append(wanted, map[string]any{
			"annotations":                  each.Annotations,
			"className":                    each.ClassName,
			"clusterAutoscalerAnnotations": each.ClusterAutoscalerAnnotations,
			"labels":                       each.Labels,
			"machineConfiguration":         each.MachineConfiguration,
			"maximum":                      each.Maximum,
			"minimum":                      each.Minimum,
			"name":                         each.Name,
			"poolName":                     each.PoolName,
			"priority":                     each.Priority,
			"secretName":                   each.SecretName,
			"strategy":                     each.Strategy,
			"taints":                       each.Taints,
		})
	}
	return map[string]any{
		"machineClasses": objectsOf(classes.Items),
		"secrets":        objectsOf(secrets.Items),
		"wanted":         wanted,
		"providerStatus": found.Status.ProviderStatus,
	}, nil
}

// objectsOf returns objects sorted by name, without what an API server adds.
func objectsOf[T any, P interface {
	*T
	client.Object
}](items []T) []T {
	for i := range items {
		P(&items[i]).SetResourceVersion("")
	}
	slices.SortFunc(items, func(one, other T) int {
		return strings.Compare(P(&one).GetName(), P(&other).GetName())
	})
	return items
}
