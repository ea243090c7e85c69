package main

import (
	"context"
	"encoding/json"

	certv1alpha1 "github.com/gardener/cert-management/pkg/apis/cert/v1alpha1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/health/utils"
	kubernetes "github.com/gardener/gardener/pkg/utils/kubernetes/health"
)

// verdict is the result of the controllers "health" and "progressing" for one object.
type verdict struct {
	Checked     bool   `json:"checked"`
	Healthy     bool   `json:"healthy"`
	Progressing bool   `json:"progressing"`
	Why         string `json:"why,omitempty"`
}

// health judges an object of a ManagedResource; pods are those that exist beside it.
func health(input json.RawMessage) (any, error) {
	var in struct {
		Object json.RawMessage   `json:"object"`
		Pods   []json.RawMessage `json:"pods"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	obj, err := object(in.Object)
	if err != nil {
		return nil, err
	}
	pods, err := clusterOf(in.Pods)
	if err != nil {
		return nil, err
	}
	checked, problem := utils.CheckHealth(obj)
	progressing, why, err := progress(pods, obj)
	if err != nil {
		return nil, err
	}
	if problem != nil {
		why = problem.Error()
	}
	return verdict{Checked: checked, Healthy: problem == nil, Progressing: progressing, Why: why}, nil
}

// progress calls the same functions as the controller's own method, which is not exported.
func progress(pods client.Reader, obj client.Object) (bool, string, error) {
	if obj.GetAnnotations()[resourcesv1alpha1.SkipHealthCheck] == "true" {
		return false, "", nil
	}
	var (
		progressing bool
		why         string
	)
	switch o := obj.(type) {
	case *appsv1.Deployment:
		if progressing, why = kubernetes.IsDeploymentProgressing(o); !progressing {
			exact, err := kubernetes.DeploymentHasExactNumberOfPods(context.Background(), pods, o)
			return !exact, "", err
		}
	case *appsv1.StatefulSet:
		progressing, why = kubernetes.IsStatefulSetProgressing(o)
	case *appsv1.DaemonSet:
		progressing, why = kubernetes.IsDaemonSetProgressing(o)
	case *monitoringv1.Prometheus:
		progressing, why = kubernetes.IsPrometheusProgressing(o)
	case *monitoringv1.Alertmanager:
		progressing, why = kubernetes.IsAlertmanagerProgressing(o)
	case *certv1alpha1.Certificate:
		progressing, why = kubernetes.IsCertificateProgressing(o)
	case *certv1alpha1.Issuer:
		progressing, why = kubernetes.IsCertificateIssuerProgressing(o)
	}
	return progressing, why, nil
}
