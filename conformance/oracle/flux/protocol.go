package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

// A question is one line of standard input.
type question struct {
	Ask   string          `json:"ask"`
	Input json.RawMessage `json:"input"`
}

// An answer is one line of standard output. Exactly one field is set.
type answer struct {
	Output any    `json:"output,omitempty"`
	Error  string `json:"error,omitempty"`      // the original's code returned an error
	Panic  string `json:"panic,omitempty"`      // the original's code panicked
	Refuse string `json:"unanswered,omitempty"` // the oracle does not understand the question
}

// unanswered marks a question that the original was never asked.
type unanswered struct{ error }

type ask func(input json.RawMessage) (any, error)

// serve answers questions, a line each, until standard input ends.
func serve(asks map[string]ask, modules ...string) error {
	asks["versions"] = func(json.RawMessage) (any, error) { return versions(modules) }
	in, out := bufio.NewReaderSize(os.Stdin, 1<<20), bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		text, err := json.Marshal(reply(asks, line))
		if err != nil {
			text, _ = json.Marshal(answer{Refuse: "the answer cannot be encoded: " + err.Error()})
		}
		if _, err := out.Write(append(text, '\n')); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

func reply(asks map[string]ask, line []byte) (result answer) {
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		return answer{Refuse: "not a question: " + err.Error()}
	}
	answering, ok := asks[q.Ask]
	if !ok {
		return answer{Refuse: "unknown ask " + q.Ask}
	}
	defer func() {
		if cause := recover(); cause != nil {
			result = answer{Panic: fmt.Sprintf("%v\n%s", cause, frames(debug.Stack()))}
		}
	}()
	output, err := answering(q.Input)
	var refused unanswered
	switch {
	case errors.As(err, &refused):
		return answer{Refuse: refused.Error()}
	case err != nil:
		return answer{Error: err.Error()}
	default:
		return answer{Output: output}
	}
}

// frames returns the functions of a stack, without addresses, which differ between runs.
func frames(stack []byte) string {
	var names []string
	for _, line := range strings.Split(string(stack), "\n") {
		if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "goroutine") {
			continue
		}
		if name, _, ok := strings.Cut(line, "("); ok && !strings.HasPrefix(name, "runtime") {
			names = append(names, name)
		}
	}
	return strings.Join(names, "\n")
}

// decode reads a part of a question, strictly: a misspelt field must not be ignored.
func decode(input json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return unanswered{fmt.Errorf("cannot read the question: %w", err)}
	}
	return nil
}

// versions returns the versions of the modules that were built in.
func versions(modules []string) (map[string]string, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, errors.New("built without module information")
	}
	found := map[string]string{}
	for _, module := range info.Deps {
		for _, name := range modules {
			if module.Path == name {
				used := module
				if module.Replace != nil {
					used = module.Replace
				}
				found[name] = used.Version
			}
		}
	}
	return found, nil
}
