// Command loadgen posts one body to a URL, again and again, and prints what came of it as JSON.
//
// It is written in Go because a client in Python would itself be what is measured. Connections are
// kept, as an API server keeps them; the server's certificate is not verified.
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"sync"
	"time"
)

type result struct {
	Requests   int     `json:"requests"`
	Errors     int     `json:"errors"`
	Seconds    float64 `json:"seconds"`
	PerSecond  float64 `json:"per_second"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	Worst      float64 `json:"worst_ms"`
	FirstError string  `json:"first_error,omitempty"`
}

type worker struct {
	client  *http.Client
	took    []time.Duration
	errors  int
	problem string
}

func main() {
	url := flag.String("url", "", "where to post")
	file := flag.String("body", "", "file with the body")
	connections := flag.Int("connections", 8, "requests at once")
	rate := flag.Float64("rate", 0, "requests a second in total; as many as possible if 0")
	warm := flag.Duration("warm", time.Second, "how long to post before it counts")
	long := flag.Duration("for", 5*time.Second, "how long to post")
	flag.Parse()
	body, err := os.ReadFile(*file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	workers := make([]*worker, *connections)
	for i := range workers {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		workers[i] = &worker{client: &http.Client{Transport: transport, Timeout: 10 * time.Second}}
	}
	pause := time.Duration(0)
	if *rate > 0 {
		pause = time.Duration(float64(*connections) / *rate * float64(time.Second))
	}
	begin := time.Now().Add(*warm)
	end := begin.Add(*long)
	var group sync.WaitGroup
	for i, w := range workers {
		group.Add(1)
		offset := pause * time.Duration(i) / time.Duration(*connections)
		go func(w *worker) {
			defer group.Done()
			w.post(*url, body, offset, pause, begin, end)
		}(w)
	}
	group.Wait()
	if err := json.NewEncoder(os.Stdout).Encode(summed(workers, *long)); err != nil {
		os.Exit(1)
	}
}

// post sends requests until the end. With a pause, each has its due time, and what is late counts
// from then: a server that stalls does not hide the requests that it kept from being sent.
func (w *worker) post(url string, body []byte, offset, pause time.Duration, begin, end time.Time) {
	due := time.Now().Add(offset)
	for time.Now().Before(end) {
		start := time.Now()
		if pause > 0 {
			time.Sleep(time.Until(due))
			start = due
			due = due.Add(pause)
		}
		problem := w.once(url, body)
		if start.Before(begin) {
			continue
		}
		if problem != "" {
			w.errors++
			w.problem = problem
		}
		w.took = append(w.took, time.Since(start))
	}
}

func (w *worker) once(url string, body []byte) string {
	response, err := w.client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err.Error()
	}
	if response.StatusCode != http.StatusOK {
		return response.Status
	}
	return ""
}

func summed(workers []*worker, long time.Duration) result {
	var all []time.Duration
	var sum result
	for _, w := range workers {
		all = append(all, w.took...)
		sum.Errors += w.errors
		if sum.FirstError == "" {
			sum.FirstError = w.problem
		}
	}
	if len(all) == 0 {
		return sum
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	at := func(share float64) float64 {
		return float64(all[int(share*float64(len(all)-1))].Microseconds()) / 1000
	}
	sum.Requests = len(all)
	sum.Seconds = long.Seconds()
	sum.PerSecond = float64(len(all)) / long.Seconds()
	sum.P50, sum.P99, sum.Worst = at(0.5), at(0.99), at(1)
	return sum
}
