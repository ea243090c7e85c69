package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	resourcemanagerclient "github.com/gardener/gardener/pkg/resourcemanager/client"
	resourcemanagerwebhook "github.com/gardener/gardener/pkg/resourcemanager/webhook"
)

// scheme has the kinds of source and target clusters.
var scheme = resourcemanagerclient.CombinedScheme

// webhookCall posts a review to the resource manager's webhook server, as an API server would. The
// original's own code reads the configuration and registers the handlers.
func webhookCall(input json.RawMessage) (any, error) {
	var in struct {
		Configuration json.RawMessage   `json:"configuration"`
		Source        []json.RawMessage `json:"source"`
		Target        []json.RawMessage `json:"target"`
		Path          string            `json:"path"`
		Review        json.RawMessage   `json:"review"`
	}
	if err := decode(input, &in); err != nil {
		return nil, err
	}
	settings := &resourcemanagerconfigv1alpha1.ResourceManagerConfiguration{}
	if err := runtime.DecodeInto(resourceManagerConfigurations, in.Configuration, settings); err != nil {
		return nil, unanswered{fmt.Errorf("cannot read the configuration: %w", err)}
	}
	source, err := clusterOf(in.Source)
	if err != nil {
		return nil, err
	}
	target, err := clusterOf(in.Target)
	if err != nil {
		return nil, err
	}
	server := routes{}
	mgr := process{server: server}
	if err := resourcemanagerwebhook.AddToManager(mgr, site{objects: source}, site{objects: target}, settings); err != nil {
		return nil, err
	}
	handler, ok := server[in.Path]
	if !ok {
		return nil, unanswered{fmt.Errorf("no webhook is at %s", in.Path)}
	}
	review, given, err := canonical(in.Review)
	if err != nil {
		return nil, err
	}
	request := httptest.NewRequest(http.MethodPost, in.Path, bytes.NewReader(review))
	request.Header.Set("Content-Type", "application/json")
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	return map[string]any{"given": given, "answer": json.RawMessage(response.Body.Bytes())}, nil
}

// canonical returns a review with its objects as Go's types write them, and these objects: a
// handler's patch then contains nothing but its own changes.
func canonical(raw json.RawMessage) (json.RawMessage, map[string]any, error) {
	review := map[string]any{}
	if err := json.Unmarshal(raw, &review); err != nil {
		return nil, nil, unanswered{fmt.Errorf("cannot read the review: %w", err)}
	}
	request, ok := review["request"].(map[string]any)
	if !ok {
		return raw, nil, nil
	}
	given := map[string]any{}
	for _, name := range []string{"object", "oldObject"} {
		if request[name] == nil {
			continue
		}
		text, err := json.Marshal(request[name])
		if err != nil {
			return nil, nil, err
		}
		typed, err := object(text)
		if err != nil {
			return nil, nil, err
		}
		request[name], given[name] = typed, typed
	}
	raw, err := json.Marshal(review)
	return raw, given, err
}

// process is a manager without a life of its own: it collects the webhooks, and starts no controllers.
type process struct {
	manager.Manager
	server routes
}

func (p process) GetScheme() *runtime.Scheme       { return scheme }
func (p process) GetLogger() logr.Logger           { return logr.Discard() }
func (p process) GetWebhookServer() webhook.Server { return p.server }
func (p process) GetConfig() *rest.Config          { return &rest.Config{} }
func (p process) Add(manager.Runnable) error       { return nil }
func (p process) Elected() <-chan struct{}         { return nil }
func (p process) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true)}
}

// routes are the handlers of a webhook server, by path.
type routes map[string]http.Handler

func (r routes) Register(path string, handler http.Handler) { r[path] = handler }
func (r routes) Start(context.Context) error                { return nil }
func (r routes) StartedChecker() healthz.Checker            { return healthz.Ping }
func (r routes) NeedLeaderElection() bool                   { return false }
func (r routes) WebhookMux() *http.ServeMux                 { return http.NewServeMux() }

// site is a cluster whose cache, client and API server always agree.
type site struct {
	cluster.Cluster
	objects client.WithWatch
}

func (s site) GetClient() client.Client       { return s.objects }
func (s site) GetAPIReader() client.Reader    { return s.objects }
func (s site) GetCache() cache.Cache          { return cached{Reader: s.objects} }
func (s site) GetScheme() *runtime.Scheme     { return s.objects.Scheme() }
func (s site) GetRESTMapper() meta.RESTMapper { return s.objects.RESTMapper() }

type cached struct {
	cache.Cache
	client.Reader
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.Reader.Get(ctx, key, obj, opts...)
}

func (c cached) WaitForCacheSync(context.Context) bool { return false }

func (c cached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.Reader.List(ctx, list, opts...)
}
