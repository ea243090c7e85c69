package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	_ "unsafe" // for names of another package

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	"github.com/gardener/gardener/extensions/pkg/controller/controlplane"
	"github.com/gardener/gardener/extensions/pkg/util"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/chart"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener/gardener-extension-provider-aws/imagevector"
	"github.com/gardener/gardener-extension-provider-aws/pkg/aws"
	awscontrolplane "github.com/gardener/gardener-extension-provider-aws/pkg/controller/controlplane"
)

// The charts of a control plane, which the original exports only through a manager.
//
//go:linkname configChart github.com/gardener/gardener-extension-provider-aws/pkg/controller/controlplane.configChart
var configChart *chart.Chart

//go:linkname controlPlaneChart github.com/gardener/gardener-extension-provider-aws/pkg/controller/controlplane.controlPlaneChart
var controlPlaneChart *chart.Chart

//go:linkname controlPlaneShootChart github.com/gardener/gardener-extension-provider-aws/pkg/controller/controlplane.controlPlaneShootChart
var controlPlaneShootChart *chart.Chart

//go:linkname controlPlaneShootCRDsChart github.com/gardener/gardener-extension-provider-aws/pkg/controller/controlplane.controlPlaneShootCRDsChart
var controlPlaneShootCRDsChart *chart.Chart

//go:linkname storageClassChart github.com/gardener/gardener-extension-provider-aws/pkg/controller/controlplane.storageClassChart
var storageClassChart *chart.Chart

// generated is a secrets manager whose Secrets have the names of their configs.
type generated struct{}

func (generated) Get(name string, _ ...secretsmanager.GetOption) (*corev1.Secret, bool) {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       map[string][]byte{"bundle.crt": []byte(name)},
	}, true
}

// controlPlaneObjects returns the objects of a control plane, by the ManagedResource that has them.
func controlPlaneObjects(input json.RawMessage) (any, error) {
	var in struct {
		ControlPlane *extensionsv1alpha1.ControlPlane `json:"controlPlane"`
		Cluster      json.RawMessage                  `json:"cluster"`
		Secret       json.RawMessage                  `json:"secret"`
		ScaledDown   bool                             `json:"scaledDown"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	ctx, namespace := context.Background(), in.ControlPlane.Namespace
	objects, err := clusterOf([]json.RawMessage{in.Cluster, in.Secret})
	if err != nil {
		return nil, err
	}
	cluster, err := extensionscontroller.GetCluster(ctx, objects, namespace)
	if err != nil {
		return nil, unanswered{fmt.Errorf("cannot read the cluster: %w", err)}
	}
	secret := &corev1.Secret{}
	if err := objects.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "cloudprovider"}, secret); err != nil {
		return nil, unanswered{err}
	}
	version := cluster.Shoot.Spec.Kubernetes.Version
	renderer, err := util.NewChartRendererForShoot(version)
	if err != nil {
		return nil, err
	}
	found := map[string][]json.RawMessage{}
	render := func(name string, of *chart.Chart, namespace string, values map[string]any) error {
		_, content, err := of.Render(renderer, namespace, imagevector.ImageVector(), "1.34.0", version, values)
		if err != nil {
			return err
		}
		found[name], err = documents(content)
		return err
	}
	provider := awscontrolplane.NewValuesProvider(process{objects: objects})
	values, err := provider.GetConfigChartValues(ctx, in.ControlPlane, cluster)
	if err != nil {
		return nil, err
	}
	if err := render("configuration", configChart, namespace, values); err != nil {
		return nil, err
	}
	checksums, err := checksumsOf(secret, found["configuration"])
	if err != nil {
		return nil, err
	}
	values, err = provider.GetControlPlaneChartValues(ctx, in.ControlPlane, cluster, generated{}, checksums, in.ScaledDown)
	if err != nil {
		return nil, err
	}
	if err := render("seed", controlPlaneChart, namespace, values); err != nil {
		return nil, err
	}
	values, err = provider.GetControlPlaneShootChartValues(ctx, in.ControlPlane, cluster, generated{}, checksums)
	if err != nil {
		return nil, err
	}
	if err := render("shoot", controlPlaneShootChart, metav1.NamespaceSystem, values); err != nil {
		return nil, err
	}
	values, err = provider.GetControlPlaneShootCRDsChartValues(ctx, in.ControlPlane, cluster)
	if err != nil {
		return nil, err
	}
	if err := render("definitions", controlPlaneShootCRDsChart, metav1.NamespaceSystem, values); err != nil {
		return nil, err
	}
	values, err = provider.GetStorageClassesChartValues(ctx, in.ControlPlane, cluster)
	if err != nil {
		return nil, err
	}
	if err := render("storageClasses", storageClassChart, metav1.NamespaceSystem, values); err != nil {
		return nil, err
	}
	return found, nil
}

// checksumsOf returns the checksums of what the generic actuator has read or deployed before.
func checksumsOf(secret *corev1.Secret, configuration []json.RawMessage) (map[string]string, error) {
	configMap := &corev1.ConfigMap{}
	if err := json.Unmarshal(configuration[0], configMap); err != nil {
		return nil, err
	}
	return controlplane.ComputeChecksums(
		map[string]*corev1.Secret{"cloudprovider": secret},
		map[string]*corev1.ConfigMap{aws.CloudProviderConfigName: configMap},
	), nil
}

// documents returns the objects in a rendered chart, decoded as a resource manager does.
func documents(content []byte) ([]json.RawMessage, error) {
	var found []json.RawMessage
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 1024)
	for {
		var raw json.RawMessage
		switch err := decoder.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		case len(raw) > 0 && string(raw) != "null":
			found = append(found, raw)
		}
	}
}
