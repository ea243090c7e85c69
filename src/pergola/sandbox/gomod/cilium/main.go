// Command cilium-config-check judges settings with the code of cilium's agent.
//
// Each line of its input is a JSON object: the keys of a ConfigMap cilium-config, the content of
// the label filter file and the labels of a pod. Each line of its output is the judgement: whether
// the agent's option parser and label filter accept the settings, which keys neither the agent nor
// the operator knows, which are deprecated, and which labels give the pod its identity.
//
// The flags come from the reference that cilium generates from its own programs, so that the
// program does not link the whole agent.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/cilium/cilium/pkg/labels"
	"github.com/cilium/cilium/pkg/labelsfilter"
	"github.com/cilium/cilium/pkg/logging"
	"github.com/cilium/cilium/pkg/option"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

type question struct {
	Config      map[string]string `json:"config"`
	LabelFilter string            `json:"labelFilter"`
	Labels      map[string]string `json:"labels"`
}

type judgement struct {
	Accepted bool     `json:"accepted"`
	Error    string   `json:"error,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Unknown  []string `json:"unknown,omitempty"`
	Identity []string `json:"identity,omitempty"`
}

// fatal is what the agent's code would have ended its process with.
type fatal string

// listener is a log handler that keeps warnings and turns fatal messages into panics.
type listener struct{ warnings *[]string }

func (l listener) Enabled(context.Context, slog.Level) bool { return true }
func (l listener) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l listener) WithGroup(string) slog.Handler            { return l }

func (l listener) Handle(_ context.Context, record slog.Record) error {
	text := record.Message
	record.Attrs(func(attr slog.Attr) bool {
		text += fmt.Sprintf(" %s=%v", attr.Key, attr.Value)
		return true
	})
	if record.Level >= logging.LevelPanic {
		panic(fatal(text))
	}
	if record.Level >= slog.LevelWarn {
		*l.warnings = append(*l.warnings, text)
	}
	return nil
}

// A line of the reference, as in `      --mtu int      Overwrite auto-detected MTU (default 1500)`.
var flagLine = regexp.MustCompile(
	`(?m)^ +(?:-\w, )?--([a-z0-9-]+)(?: (\w+))?(?: {2,}.*?(?:\(default "?(.*?)"?\))?)?$`)

// Flags that the agent leaves out of its reference: hidden ones, and deprecated ones.
var hidden = map[string]string{
	option.EnableK8sNetworkPolicy:                        "",
	option.EnableNonDefaultDenyPolicies:                  "",
	option.EnableSourceIPVerification:                    "",
	option.InstallIptRules:                               "",
	option.EnableEncryptionStrictMode:                    "",
	option.EncryptionStrictModeCIDR:                      "string",
	option.EncryptionStrictModeAllowRemoteNodeIdentities: "",
}

func flagsOf(reference string, known *pflag.FlagSet) error {
	text, err := os.ReadFile(reference)
	if err != nil {
		return err
	}
	for _, found := range flagLine.FindAllStringSubmatch(string(text), -1) {
		name, kind, standard := found[1], found[2], strings.Trim(found[3], "[]")
		if known.Lookup(name) != nil {
			continue
		}
		register(known, name, kind)
		if standard != "" {
			// The reference describes a few defaults in words; those flags keep their zero value.
			_ = known.Lookup(name).Value.Set(standard)
		}
	}
	return nil
}

func register(known *pflag.FlagSet, name, kind string) {
	switch kind {
	case "":
		known.Bool(name, false, "")
	case "duration":
		known.Duration(name, 0, "")
	case "int":
		known.Int(name, 0, "")
	case "uint":
		known.Uint(name, 0, "")
	case "uint8":
		known.Uint8(name, 0, "")
	case "uint16":
		known.Uint16(name, 0, "")
	case "uint32":
		known.Uint32(name, 0, "")
	case "float", "float32", "float64":
		known.Float64(name, 0, "")
	case "strings":
		known.StringSlice(name, nil, "")
	case "stringToString":
		known.StringToString(name, nil, "")
	default:
		known.String(name, "", "")
	}
}

func judge(asked question, known *pflag.FlagSet, mounted *volume) (found judgement) {
	defer func() {
		if reason := recover(); reason != nil {
			found.Accepted = false
			found.Error = fmt.Sprint(reason)
		}
	}()
	for key := range asked.Config {
		if known.Lookup(key) == nil {
			found.Unknown = append(found.Unknown, key)
		}
	}
	sort.Strings(found.Unknown)
	logger := slog.New(listener{&found.Warnings})
	if err := parse(asked, known, mounted, logger); err != nil {
		found.Error = err.Error()
		return found
	}
	identity, _ := labelsfilter.Filter(labels.Map2Labels(asked.Labels, labels.LabelSourceK8s))
	for key := range identity {
		found.Identity = append(found.Identity, key)
	}
	sort.Strings(found.Identity)
	found.Accepted = true
	return found
}

// volume is a directory with the files of a ConfigMap, as an agent has it mounted.
type volume struct {
	directory, filter string
	files             map[string]string
}

// hold makes the directory have these files; those of equal content are not written again.
func (v *volume) hold(files map[string]string) error {
	for name := range v.files {
		if _, stays := files[name]; !stays {
			if err := os.Remove(filepath.Join(v.directory, name)); err != nil {
				return err
			}
			delete(v.files, name)
		}
	}
	for name, content := range files {
		if held, ok := v.files[name]; ok && held == content {
			continue
		}
		path := filepath.Join(v.directory, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
		v.files[name] = content
	}
	return nil
}

// parse does what the agent does with its settings before it touches its node.
func parse(asked question, known *pflag.FlagSet, mounted *volume, logger *slog.Logger) error {
	if err := os.WriteFile(mounted.filter, []byte(asked.LabelFilter), 0o600); err != nil {
		return err
	}
	files := maps.Clone(asked.Config)
	if _, ok := files[option.LabelPrefixFile]; ok {
		files[option.LabelPrefixFile] = mounted.filter
	}
	if err := mounted.hold(files); err != nil {
		return err
	}
	command := &cobra.Command{Use: "cilium-agent"}
	command.Flags().AddFlagSet(known)
	settings := viper.New()
	if err := settings.BindPFlags(command.Flags()); err != nil {
		return err
	}
	settings.Set(option.ConfigDir, mounted.directory)
	settings.Set(option.ConfigFile, "")
	option.InitConfig(logger, command, "cilium-agent", "cilium", settings)()
	fresh := *pristine
	option.Config = &fresh
	option.Config.Populate(logger, settings)
	if err := option.Config.Validate(settings); err != nil {
		return err
	}
	if _, err := option.ParseMonitorAggregationLevel(option.Config.MonitorAggregation); err != nil {
		return err
	}
	return labelsfilter.ParseLabelPrefixCfg(
		logger, option.Config.Labels, option.Config.NodeLabels, option.Config.LabelPrefixFile)
}

var pristine = option.Config

func run(references []string, in io.Reader, out io.Writer) error {
	known := pflag.NewFlagSet("cilium", pflag.ContinueOnError)
	for _, reference := range references {
		if err := flagsOf(reference, known); err != nil {
			return err
		}
	}
	for name, kind := range hidden {
		register(known, name, kind)
	}
	folder, err := os.MkdirTemp("", "cilium-config-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	mounted := &volume{
		directory: filepath.Join(folder, "config-map"),
		filter:    filepath.Join(folder, "label-prefix"),
		files:     map[string]string{},
	}
	if err := os.Mkdir(mounted.directory, 0o700); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 4<<20)
	answers := json.NewEncoder(out)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		if err := answers.Encode(judge(asked, known, mounted)); err != nil {
			return err
		}
	}
	return lines.Err()
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: cilium-config-check REFERENCE... < QUESTIONS")
		os.Exit(2)
	}
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cilium-config-check:", err)
		os.Exit(1)
	}
}
