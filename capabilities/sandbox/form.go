package sandbox

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/internal/egress"
	"github.com/stilehost/stile/capabilities/sandbox/images"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

var fields = []string{"image", "memory", "disk", "cpu", "processes", "time", "traffic", "network", "intercept", "allow"}

const (
	exampleSpec   = "sandbox:host,memory=1GiB"
	exampleRights = `{ "image": "host" }`
)

func parse(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
	given := r.Fields(n, exampleRights, fields, "image")
	g := Rights{Intercept: egress.ReadIntercept(r, given["intercept"])}
	for _, name := range fields {
		field := given[name]
		if field == nil || r.Err != nil || name == "intercept" {
			continue
		}
		if name == "network" {
			g.Network = egress.ReadRules(r, field, "sandbox", g.Intercept)
			continue
		}
		if name == "allow" {
			for _, item := range r.Items(field, maxAllowed, `[".github/workflows"]`) {
				text := r.Text(item, `".github/workflows"`)
				if r.Err == nil {
					if problem := g.set(name, text); problem != "" {
						r.Fail(item, `a path like ".github/workflows"`, "%s", problem)
					}
				}
			}
			continue
		}
		text, isNumber := "", false
		if number, ok := field.Value.(json.Number); ok && (name == "cpu" || name == "processes") {
			text, isNumber = number.String(), true
		}
		if !isNumber {
			text = r.Text(field, examples[name])
		}
		if r.Err == nil {
			if problem := g.set(name, text); problem != "" {
				r.Fail(field, examples[name], "%s", problem)
			}
		}
	}
	if g.Intercept && len(g.Network) == 0 {
		r.Fail(given["intercept"], `rules in "network", or leave it out`, "there is nothing to intercept")
	}
	return g
}

var examples = map[string]string{
	"image": `the name of an image, like "host"`, "memory": `a size like "1GiB"`, "disk": `a size like "2GiB"`, "cpu": "a number like 1.5",
	"processes": "a number like 256", "time": `a time like "10m"`, "traffic": `a size like "1GiB"`,
}

const maxAllowed = 32

// ofRules are the options of a command line that belong to the rule before them.
var ofRules = []string{"methods", "headers", "credential", "as", "addresses"}

// set sets a field from its text, and returns what is wrong with the text.
func (g *Rights) set(name, text string) (problem string) {
	size := func(to *int64, least, most int64) string {
		n, ok := parseSize(text)
		if !ok || n < least || n > most {
			return fmt.Sprintf("%s is no size from %s to %s", jsonform.Quote(text), showSize(least), showSize(most))
		}
		*to = n
		return ""
	}
	switch name {
	case "image":
		if !images.IsName(text) {
			return jsonform.Quote(text) + " cannot name an image"
		}
		g.Image = text
	case "memory":
		return size(&g.Limits.Memory, 16<<20, most.Memory)
	case "disk":
		return size(&g.Limits.Disk, 16<<20, most.Disk)
	case "traffic":
		return size(&g.Limits.Traffic, 1<<20, most.Traffic)
	case "cpu":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= 0.01 && n <= most.CPU) {
			return fmt.Sprintf("%s is no number of processors from 0.01 to %v", jsonform.Quote(text), most.CPU)
		}
		g.Limits.CPU = n
	case "processes":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 8 || n > most.Processes {
			return fmt.Sprintf("%s is no number of processes from 8 to %d", jsonform.Quote(text), most.Processes)
		}
		g.Limits.Processes = n
	case "time":
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second || d > most.Time {
			return fmt.Sprintf("%s is no time from 1s to %s", jsonform.Quote(text), showTime(most.Time))
		}
		g.Limits.Time = d
	case "allow":
		if text == "" || len(text) > 1024 || path.Clean("/"+text) != "/"+text || printable.Line(text) != text {
			return jsonform.Quote(text) + " is no path"
		}
		g.Allow = append(g.Allow, text)
	}
	return ""
}

func parseSize(text string) (int64, bool) {
	for _, unit := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}} {
		if number, ok := strings.CutSuffix(text, unit.name); ok {
			n, err := strconv.ParseInt(number, 10, 32)
			return n * unit.size, err == nil && n > 0
		}
	}
	return 0, false
}

func showSize(n int64) string {
	if n%(1<<30) == 0 {
		return strconv.FormatInt(n>>30, 10) + "GiB"
	}
	return strconv.FormatInt(n>>20, 10) + "MiB"
}

// showTime is a duration without units that are zero.
func showTime(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func parseSpec(s capability.Spec) (capability.Grant, error) {
	g := Rights{}
	mistake := func(text string) error { return &capability.MistakeError{Text: text, Fix: exampleSpec} }
	if problem := g.set("image", s.Argument); problem != "" {
		return nil, mistake(problem)
	}
	var rules []string
	for option := range strings.SplitSeq(s.Options, ",") {
		if s.Options == "" {
			break
		}
		name, value, _ := strings.Cut(option, "=")
		switch {
		case option == "intercept":
			g.Intercept = true
		case name == "network":
			rules = append(rules, value)
		case slices.Contains(ofRules, name) && len(rules) > 0:
			rules[len(rules)-1] += "," + option
		case name == "image" || name == "intercept" || !slices.Contains(fields, name):
			return nil, mistake("a sandbox has no option " + jsonform.Quote(option))
		default:
			if problem := g.set(name, value); problem != "" {
				return nil, mistake(problem)
			}
		}
	}
	for _, text := range rules {
		rule, err := egress.ParseRule(text, g.Intercept)
		if err != nil {
			return nil, mistake(err.Error())
		}
		g.Network = append(g.Network, rule)
	}
	if g.Intercept && len(g.Network) == 0 {
		return nil, mistake("the option intercept needs network=RULE")
	}
	return g, nil
}

// Secrets implements [capability.SecretUser].
func (g Rights) Secrets() []string { return http.Secrets(g.Network) }

// Specs implements [capability.SecretUser].
func (g Rights) Specs() []string {
	d := g.Document().(document)
	spec := []string{d.Image}
	for _, option := range []struct{ name, value string }{
		{"memory", d.Memory}, {"disk", d.Disk}, {"time", d.Time}, {"traffic", d.Traffic},
	} {
		if option.value != "" {
			spec = append(spec, option.name+"="+option.value)
		}
	}
	if d.CPU != 0 {
		spec = append(spec, fmt.Sprintf("cpu=%v", d.CPU))
	}
	if d.Processes != 0 {
		spec = append(spec, fmt.Sprintf("processes=%d", d.Processes))
	}
	for _, path := range d.Allow {
		spec = append(spec, "allow="+path)
	}
	for _, rule := range d.Network {
		spec = append(spec, "network="+rule.String())
	}
	if d.Intercept {
		spec = append(spec, "intercept")
	}
	return []string{strings.Join(spec, ",")}
}

// document has the fields of a manifest, in order. Fields without a value have their defaults.
type document struct {
	Image     string      `json:"image"`
	Memory    string      `json:"memory,omitempty"`
	Disk      string      `json:"disk,omitempty"`
	CPU       float64     `json:"cpu,omitempty"`
	Processes int64       `json:"processes,omitempty"`
	Time      string      `json:"time,omitempty"`
	Traffic   string      `json:"traffic,omitempty"`
	Network   []http.Rule `json:"network,omitempty"`
	Intercept bool        `json:"intercept,omitempty"`
	Allow     []string    `json:"allow,omitempty"`

	Within [][]http.Rule `json:"within,omitempty"`
}

// Document implements [capability.Grant]; with Within it is for people only.
func (g Rights) Document() any {
	d := document{Image: g.Image, CPU: g.Limits.CPU, Processes: g.Limits.Processes, Network: g.Network, Intercept: g.Intercept, Allow: g.Allow, Within: g.Within}
	if g.Limits.Memory != 0 {
		d.Memory = showSize(g.Limits.Memory)
	}
	if g.Limits.Disk != 0 {
		d.Disk = showSize(g.Limits.Disk)
	}
	if g.Limits.Traffic != 0 {
		d.Traffic = showSize(g.Limits.Traffic)
	}
	if g.Limits.Time != 0 {
		d.Time = showTime(g.Limits.Time)
	}
	return d
}
