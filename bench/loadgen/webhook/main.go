// Command webhook is the measure for others: a Go server, as bare as one can be, that reads a
// review of a pod with encoding/json and answers with a patch. It knows of a pod only what it needs,
// which is far less than a server with typed pods reads.
package main

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
)

type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID       string          `json:"uid"`
	Operation string          `json:"operation"`
	Namespace string          `json:"namespace"`
	Object    json.RawMessage `json:"object"`
}

type pod struct {
	Spec struct {
		NodeSelector map[string]string `json:"nodeSelector"`
		Tolerations  []map[string]any  `json:"tolerations"`
	} `json:"spec"`
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

type response struct {
	UID       string `json:"uid"`
	Allowed   bool   `json:"allowed"`
	PatchType string `json:"patchType"`
	Patch     []byte `json:"patch"`
}

func main() {
	folder := os.Args[1]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	if err := os.WriteFile(filepath.Join(folder, "port.new"), []byte(port), 0o600); err != nil {
		log.Fatal(err)
	}
	if err := os.Rename(filepath.Join(folder, "port.new"), filepath.Join(folder, "port")); err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(serve), ErrorLog: log.New(io.Discard, "", 0)}
	log.Fatal(server.ServeTLS(
		listener, filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"),
	))
}

func serve(writer http.ResponseWriter, got *http.Request) {
	body, err := io.ReadAll(io.LimitReader(got.Body, 7<<20))
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	var asked review
	var about pod
	if err := json.Unmarshal(body, &asked); err != nil || asked.Request == nil {
		http.Error(writer, "no review", http.StatusBadRequest)
		return
	}
	if err := json.Unmarshal(asked.Request.Object, &about); err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	tolerations := append(about.Spec.Tolerations, map[string]any{"operator": "Exists"})
	patch, err := json.Marshal([]operation{
		{"add", "/spec/nodeSelector", map[string]string{"system": "true"}},
		{"add", "/spec/tolerations", tolerations},
	})
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	answer := review{APIVersion: asked.APIVersion, Kind: asked.Kind}
	answer.Response = &response{asked.Request.UID, true, "JSONPatch", patch}
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(answer) // who is gone needs no answer
}
