package code

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/calls"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// Kind is code that comes at run time. The options of a site are an [Evaluator].
var Kind = &capability.Kind{
	Name: "code", Interface: Interface, Fixed: true, Example: "{}", Parse: parse, ParseSpec: parseSpec, Learn: newRecorded,
	SpecForm: "code[:NAME+...][,option]...",
	SpecMeans: `code that the tool gets at run time, such as a model's, with the named bindings at most;
options: runs=100, seconds=1 of processor time and megabytes=64 of memory for each run,
bytes=262144 of code and input, and of the result`,
}

// Rights are the right to run code that nobody has reviewed.
type Rights struct {
	// Env are the names of the caller's bindings that may be passed on to code, in byte order.
	Env []string
	// Limits bound the code.
	Limits Limits
}

const (
	exampleRights = `{ "env": ["notes"] }`
	exampleSpec   = "code:notes,runs=20"
	maxEnv        = 64
)

// numbers are the fields of a grant that are numbers, and the most that each can be.
var numbers = []struct {
	name string
	most int64
}{
	{"runs", int64(most.Runs)}, {"seconds", int64(most.CPU / time.Second)}, {"megabytes", most.Memory >> 20}, {"bytes", most.Bytes},
}

// set sets a number.
func (l *Limits) set(name string, n int64) {
	switch name {
	case "runs":
		l.Runs = int(n)
	case "seconds":
		l.CPU = time.Duration(n) * time.Second
	case "megabytes":
		l.Memory = n << 20
	case "bytes":
		l.Bytes = n
	}
}

// number reads a number, and returns what is wrong with it.
func (g *Rights) number(name, text string) (problem, instead string) {
	for _, known := range numbers {
		if known.name != name {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > known.most {
			return fmt.Sprintf("%s is no number of %s for code", jsonform.Quote(text), name), fmt.Sprintf("a number from 1 to %d", known.most)
		}
		g.Limits.set(name, n)
		return "", ""
	}
	return "code has no option " + jsonform.Quote(name), exampleSpec
}

var bindingName = lazyregexp.New(`^[a-z][a-z0-9_]{0,63}$`)

// add adds a binding, and returns what is wrong with its name.
func (g *Rights) add(name string) (problem string) {
	switch {
	case !bindingName.MatchString(name):
		return jsonform.Quote(name) + " cannot name a binding"
	case slices.Contains(g.Env, name):
		return "the binding " + jsonform.Quote(name) + " is here twice"
	case len(g.Env) == maxEnv:
		return fmt.Sprintf("code can have at most %d bindings", maxEnv)
	}
	g.Env = append(g.Env, name)
	slices.Sort(g.Env)
	return ""
}

func parse(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
	names := []string{"env"}
	for _, number := range numbers {
		names = append(names, number.name)
	}
	given := r.Fields(n, exampleRights, names)
	var g Rights
	if list := given["env"]; list != nil {
		for _, item := range r.Items(list, maxEnv, `["notes"]`) {
			name := r.Text(item, `"notes"`)
			if r.Err != nil {
				break
			}
			if problem := g.add(name); problem != "" {
				r.Fail(item, `names of bindings, each once, like "notes"`, "%s", problem)
			}
		}
	}
	for _, number := range numbers {
		field := given[number.name]
		if field == nil || r.Err != nil {
			continue
		}
		text, ok := field.Value.(json.Number)
		if !ok {
			r.Fail(field, fmt.Sprintf("a number from 1 to %d", number.most), "%s where a number belongs", field.What())
		} else if problem, instead := g.number(number.name, text.String()); problem != "" {
			r.Fail(field, instead, "%s", problem)
		}
	}
	return g
}

func parseSpec(s capability.Spec) (capability.Grant, error) {
	g := Rights{}
	if s.HasArgument {
		for name := range strings.SplitSeq(s.Argument, "+") {
			if problem := g.add(name); problem != "" {
				return nil, &capability.MistakeError{Text: problem, Fix: exampleSpec}
			}
		}
	}
	if s.Options != "" {
		for option := range strings.SplitSeq(s.Options, ",") {
			name, value, _ := strings.Cut(option, "=")
			if problem, instead := g.number(name, value); problem != "" {
				return nil, &capability.MistakeError{Text: problem, Fix: instead}
			}
		}
	}
	return g, nil
}

// document has the fields of a manifest, in order. Fields without a value have their defaults.
type document struct {
	Env       []string `json:"env,omitempty"`
	Runs      int      `json:"runs,omitempty"`
	Seconds   int64    `json:"seconds,omitempty"`
	Megabytes int64    `json:"megabytes,omitempty"`
	Bytes     int64    `json:"bytes,omitempty"`
}

// Kind implements [capability.Grant].
func (Rights) Kind() *capability.Kind { return Kind }

// Interface implements [capability.Grant].
func (Rights) Interface() string { return Interface }

// Document implements [capability.Grant].
func (g Rights) Document() any {
	l := g.Limits
	return document{g.Env, l.Runs, int64(l.CPU / time.Second), l.Memory >> 20, l.Bytes}
}

// Describe implements [capability.Grant].
func (g Rights) Describe() []string {
	l := g.Limits.withDefaults()
	lines := []string{"may run code that it gets when it is called, such as a model's. Nobody reviews that code: you approve it here, unseen"}
	if len(g.Env) == 0 {
		lines = append(lines, "that code gets none of the other bindings: it can compute, tell the time and return a result")
	} else {
		lines = append(lines, "that code can do everything that these bindings may: "+printable.Line(strings.Join(g.Env, ", ")))
	}
	often := "once"
	if l.Runs > 1 {
		often = fmt.Sprintf("%d times", l.Runs)
	}
	memory := showSize(l.Memory) + " of memory"
	if together := min(l.Runs, calls.MaxRunning); together > 1 {
		memory += fmt.Sprintf(" (%s if %d run at once)", printable.Size(int64(together)*l.Memory), together)
	}
	return append(lines, fmt.Sprintf("may run code %s a call, each time with %s of processor time, %s, %s of code and input, and %s of result",
		often, showTime(l.CPU), memory, printable.Size(l.Bytes), printable.Size(l.Bytes)))
}

// Authority implements [capability.Grant].
func (g Rights) Authority() []string {
	l := g.Limits.withDefaults()
	lines := []string{"code that nobody has reviewed"}
	for _, name := range g.Env {
		lines = append(lines, printable.Line("code may use "+name))
	}
	return append(lines, fmt.Sprintf("code runs %d", l.Runs), "code time "+showTime(l.CPU), "code memory "+showSize(l.Memory), fmt.Sprintf("code bytes %d", l.Bytes))
}

// Passes implements [capability.Passer].
func (g Rights) Passes() []string { return slices.Clone(g.Env) }

// Covers implements [capability.Grant].
func (g Rights) Covers(asked capability.Grant) bool {
	a, ok := asked.(Rights)
	if !ok {
		return false
	}
	for _, name := range a.Env {
		if !slices.Contains(g.Env, name) {
			return false
		}
	}
	wants := a.Limits.withDefaults()
	return wants == wants.within(g.Limits.withDefaults())
}

// Limit implements [capability.Limiter]: a ceiling lowers the limits, and takes away bindings.
func (g Rights) Limit(ceiling []capability.Grant) capability.Grant {
	for _, one := range ceiling {
		c, ok := one.(Rights)
		if !ok {
			continue
		}
		if c.Covers(g) {
			return g
		}
		limited := Rights{Limits: g.Limits.withDefaults().within(c.Limits.withDefaults())}
		for _, name := range g.Env {
			if slices.Contains(c.Env, name) {
				limited.Env = append(limited.Env, name)
			}
		}
		return limited
	}
	return nil
}

// Reach implements [capability.Reacher]. Code reaches what the other bindings reach.
func (Rights) Reach() (changes, open bool) { return false, false }

// Remedy implements [capability.Remedier].
func (g Rights) Remedy(spec string, wanted capability.Grant) string {
	w, ok := wanted.(Rights)
	name, text, found := strings.Cut(spec, "=")
	if !ok || !found {
		return ""
	}
	_, options, has := strings.Cut(text, ",")
	text = name + "=code:" + strings.Join(w.Env, "+")
	if has {
		text += "," + options
	}
	if printable.Text(text) != text { // a guest chose part of it
		return ""
	}
	return text
}

// Open implements [capability.Opener].
func (g Rights) Open(_ context.Context, s *capability.Site) (abi.Capability, error) {
	evaluate, ok := s.Options(Kind).(Evaluator)
	if !ok {
		return nil, capability.ErrUnbound
	}
	return New(g, evaluate), nil
}
