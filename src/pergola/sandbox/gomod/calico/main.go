// Command calico-config-check judges settings with the code of Calico's felix and typha.
//
// Each line of its input is a JSON object: the environment of a container. Each line of its output
// is the judgement: whether the parser of the program whose variables are set accepts them, which
// it does not know, and what it warns of, such as a value that it replaces by a default.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"

	felix "github.com/projectcalico/calico/felix/config"
	typha "github.com/projectcalico/calico/typha/pkg/config"
	log "github.com/sirupsen/logrus"
)

type question struct {
	Environment map[string]string `json:"environment"`
}

type judgement struct {
	Accepted bool     `json:"accepted"`
	Error    string   `json:"error,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Unknown  []string `json:"unknown,omitempty"`
}

// listener keeps what the parsers log: they go on with a default where they cannot read a value.
type listener struct{ found *judgement }

const unknown = "Ignoring unknown config param."

func (l *listener) Levels() []log.Level { return log.AllLevels }

func (l *listener) Fire(entry *log.Entry) error {
	if l.found == nil {
		return nil
	}
	if entry.Message == unknown {
		l.found.Unknown = append(l.found.Unknown, fmt.Sprint(entry.Data["raw name"]))
	} else if entry.Level <= log.WarnLevel {
		text := entry.Message
		if reason, ok := entry.Data[log.ErrorKey]; ok {
			text = fmt.Sprintf("%s: %v", text, reason)
		}
		l.found.Warnings = append(l.found.Warnings, text)
	}
	return nil
}

func judge(asked question, heard *listener) judgement {
	found := judgement{}
	heard.found = &found
	defer func() { heard.found = nil }()
	environ := make([]string, 0, len(asked.Environment))
	for name, value := range asked.Environment {
		environ = append(environ, name+"="+value)
	}
	sort.Strings(environ)
	if err := parse(environ); err != nil {
		found.Error = err.Error()
	}
	found.Accepted = found.Error == ""
	sort.Strings(found.Unknown)
	sort.Strings(found.Warnings)
	return found
}

func parse(environ []string) error {
	if given := felix.LoadConfigFromEnvironment(environ); len(given) > 0 {
		settings := felix.New()
		if _, err := settings.UpdateFrom(given, felix.EnvironmentVariable); err != nil {
			return err
		}
		if err := settings.Validate(); err != nil {
			return err
		}
	}
	if given := typha.LoadConfigFromEnvironment(environ); len(given) > 0 {
		settings := typha.New()
		if _, err := settings.UpdateFrom(given, typha.EnvironmentVariable); err != nil {
			return err
		}
		return settings.Validate()
	}
	return nil
}

func run(in io.Reader, out io.Writer) error {
	heard := &listener{}
	log.SetOutput(io.Discard)
	log.SetLevel(log.InfoLevel)
	log.AddHook(heard)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 4<<20)
	answers := json.NewEncoder(out)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		if err := answers.Encode(judge(asked, heard)); err != nil {
			return err
		}
	}
	return lines.Err()
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "calico-config-check:", err)
		os.Exit(1)
	}
}
