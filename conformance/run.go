package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stilehost/stile/conformance/protocol"
	"github.com/stilehost/stile/toolchain"
)

const (
	defaultPatience = 90 * time.Second
	helloTime       = time.Minute // until a host says what it is
	maxRestarts     = 5           // of a host in a row that break the protocol
)

// Options configure Run.
type Options struct {
	// Host is the command line of the host program.
	Host []string
	// Section is the only section to run. Default: all.
	Section string
	// Match selects cases by name. Default: all.
	Match func(name string) bool
	// Toolchain makes the components, and Folder keeps them. Both belong to the caller.
	Toolchain *toolchain.Toolchain
	Folder    string
	// Patience is how long the host may take to answer, beyond a call's limit of wall time. Default 90 s.
	Patience time.Duration
	// Progress, if not nil, gets a line before each case.
	Progress func(done, of int, name string)
}

// Verdict is what became of a case.
type Verdict string

// The verdicts. Unexpected is a pass of a case that the host was expected to fail.
const (
	Pass         Verdict = "pass"
	Fail         Verdict = "fail"
	ExpectedFail Verdict = "expected-fail"
	Unexpected   Verdict = "unexpected-pass"
	Skip         Verdict = "skip"
)

// Outcome is the outcome of one case.
type Outcome struct {
	Section string  `json:"section"`
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Why says what went wrong, or why the case was skipped or expected to fail.
	Why string `json:"why,omitempty"`
}

// Report is the outcome of a run.
type Report struct {
	Host     string    `json:"host"`
	Version  string    `json:"version"`
	Protocol int       `json:"protocol"`
	Cases    []Outcome `json:"cases"`
}

// runner is a run under way.
type runner struct {
	Options
	servers *servers
	builder *builder
	host    *protocol.Host
	ended   int // hosts in a row that broke the protocol
}

// Run tests a host. It returns an error if the host cannot be tested to the end, or ctx ends: a *protocol.HostError for the host's fault.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	s, err := startServers(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	cases, err := Load(o.Section, s.ports)
	if err != nil {
		return nil, err
	}
	if o.Match != nil {
		cases = slices.DeleteFunc(cases, func(c *Case) bool { return !o.Match(c.Name) })
	}
	b, err := newBuilder(o.Toolchain, o.Folder)
	if err != nil {
		return nil, err
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	r := &runner{Options: o, servers: s, builder: b}
	if r.host, err = protocol.Start(ctx, o.Host, nil, min(o.Patience, helloTime)); err != nil {
		return nil, err
	}
	defer func() {
		if r.host != nil {
			r.host.Close()
		}
	}()
	is := r.host.Hello() // also of those that are started after it
	expected, err := Expected(is.Name)
	if err != nil {
		return nil, err
	}
	report := &Report{Host: is.Name, Version: is.Version, Protocol: protocol.Version}
	for i, c := range cases {
		if o.Progress != nil {
			o.Progress(i, len(cases), c.Name)
		}
		out := Outcome{Section: c.Section, Name: c.Name, Verdict: Pass}
		reason, expectedToFail := expected[c.Name]
		if lacks := slices.DeleteFunc(c.kinds(), func(k string) bool { return slices.Contains(is.Kinds, k) }); len(lacks) > 0 {
			out.Verdict, out.Why = Skip, "the host has no "+strings.Join(lacks, " and no ")
			report.Cases = append(report.Cases, out)
			continue
		}
		problem, err := r.run(ctx, c)
		if err != nil {
			return nil, err
		}
		switch {
		case problem == "" && expectedToFail:
			out.Verdict, out.Why = Unexpected, "expected to fail: "+reason
		case problem == "":
		case expectedToFail:
			out.Verdict, out.Why = ExpectedFail, reason
		default:
			out.Verdict, out.Why = Fail, problem
		}
		report.Cases = append(report.Cases, out)
	}
	return report, nil
}

// run runs a case, and says what is wrong with the host's behaviour.
func (r *runner) run(ctx context.Context, c *Case) (problem string, err error) {
	component, err := r.builder.build(ctx, c)
	if err != nil {
		return "", err
	}
	var first []*protocol.Result
	for n := range c.Repeat {
		results, problem, err := r.once(ctx, c, component)
		if broken, ok := errors.AsType[*protocol.HostError](err); ok {
			return r.restart(ctx, broken)
		}
		if err != nil || problem != "" {
			return problem, err
		}
		r.ended = 0
		if n == 0 {
			first = results
		}
		if c.Same {
			if problem := compareResults(first, results); problem != "" {
				return problem, nil
			}
		}
	}
	return "", nil
}

// compareResults says how the results of a case's calls differ from those of the first time.
func compareResults(first, results []*protocol.Result) string {
	for i := range results {
		was, _ := json.Marshal(first[i]) // texts and lists of texts, which always have a JSON
		is, _ := json.Marshal(results[i])
		if !bytes.Equal(was, is) {
			return fmt.Sprintf("call %d does something else the next time: %.300s, and then %.300s", i+1, was, is)
		}
	}
	return ""
}

// restart starts the host again after it broke the protocol, which fails the case.
func (r *runner) restart(ctx context.Context, broken *protocol.HostError) (problem string, err error) {
	r.host.Kill()
	broken.Stderr = r.host.Stderr()
	r.host = nil
	if r.ended++; r.ended >= maxRestarts {
		return "", fmt.Errorf("gave up after %d cases in a row: %w", r.ended, broken)
	}
	if r.host, err = protocol.Start(ctx, r.Host, nil, min(r.Patience, helloTime)); err != nil {
		return "", err
	}
	return broken.Error(), nil
}

// once makes the calls of a case once. An error is a *protocol.HostError, or the runner's own.
func (r *runner) once(ctx context.Context, c *Case, component string) (results []*protocol.Result, problem string, err error) {
	folder, err := os.MkdirTemp("", "stile-conformance-")
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := lay(folder, c.Files); err != nil {
		return nil, "", fmt.Errorf("%s: %w", c.Name, err)
	}

	last := lastCall{turn: make(chan struct{}, 1)}
	r.servers.begin(func(ctx context.Context, op, binding string) error {
		answer, err := r.host.Ask(ctx, protocol.Request{Op: op, Of: last.get(), Binding: binding, Reason: "the suite says so"}, r.Patience)
		if err == nil && answer.Error != "" {
			err = errors.New(answer.Error)
		}
		return err
	})
	results = make([]*protocol.Result, len(c.Calls))
	problems := make([]string, len(c.Calls))
	failures := make([]error, len(c.Calls))
	call := func(i int) {
		began := time.Now()
		answer, err := last.begin(func() (int, <-chan protocol.Response, error) {
			return r.host.Send(protocol.Request{Op: "call", Call: c.request(i, component, folder)})
		})
		if err != nil {
			failures[i] = err
			return
		}
		got, err := r.host.Await(ctx, answer, r.Patience+time.Duration(c.Calls[i].Limits.Wall)*time.Millisecond)
		switch {
		case err != nil:
			failures[i] = err
		case got.Error != "":
			problems[i] = "the host cannot make the call: " + got.Error
		case got.Result == nil:
			failures[i] = &protocol.HostError{Reason: "answers a call without a result"}
		default:
			results[i] = got.Result
			problems[i] = c.Calls[i].Expect.compare(got.Result, time.Since(began))
		}
	}
	var wait sync.WaitGroup
	for i := range c.Calls {
		if c.Parallel {
			wait.Go(func() { call(i) })
			continue
		}
		if call(i); failures[i] != nil || problems[i] != "" {
			break
		}
	}
	wait.Wait()
	if err := errors.Join(failures...); err != nil {
		if broken, ok := errors.AsType[*protocol.HostError](err); ok {
			return nil, "", broken
		}
		return nil, "", err
	}
	for i, p := range problems {
		if p != "" {
			return nil, fmt.Sprintf("call %d (%s): %s", i+1, c.Calls[i].Tool, p), nil
		}
	}
	return results, cmp.Or(r.compareArrived(c), compareFiles(folder, c.After)), nil
}

// lastCall is the last call that began, which revoke and cancel are about.
type lastCall struct {
	turn chan struct{} // full while id changes or is read
	id   int
}

// begin sends a call. The host can be told to revoke and cancel before send has returned, so get waits for that.
func (l *lastCall) begin(send func() (int, <-chan protocol.Response, error)) (answer <-chan protocol.Response, err error) {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	l.id, answer, err = send()
	return answer, err
}

func (l *lastCall) get() int {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return l.id
}

// request is the n-th call of a case.
func (c *Case) request(n int, component, folder string) *protocol.Call {
	call := c.Calls[n]
	input := string(call.Input)
	if input == "" {
		input = "{}"
	}
	env := call.Env
	if env == nil {
		env = c.Env
	}
	env = maps.Clone(env)
	for name, b := range env {
		if b.Directory != "" {
			b.Directory = filepath.Join(folder, filepath.FromSlash(b.Directory))
			env[name] = b
		}
		if b.Kind == "kv" {
			b.Store = filepath.Base(folder) + "-" + b.Store // of this case and this repetition alone
			env[name] = b
		}
	}
	return &protocol.Call{Component: component, Tool: call.Tool, Input: input, Env: env, Limits: call.Limits, Names: c.Names}
}

// compare says how a result differs from what is expected.
func (e *Expect) compare(r *protocol.Result, took time.Duration) string {
	outcome := e.Outcome
	if outcome == "" {
		outcome = protocol.OK
	}
	detail := r.Output
	if r.Message != "" {
		detail = r.Message
	}
	if !slices.Contains(strings.Split(outcome, "|"), r.Outcome) {
		return fmt.Sprintf("the outcome is %q and must be %q: %.300s", r.Outcome, outcome, detail)
	}
	if len(e.Output) > 0 && r.Outcome == protocol.OK && !sameJSON(e.Output, []byte(r.Output)) {
		return fmt.Sprintf("the output is %.300s and must be %.300s", r.Output, e.Output)
	}
	if len(e.OneOf) > 0 && !slices.ContainsFunc(e.OneOf, func(want json.RawMessage) bool { return sameJSON(want, []byte(r.Output)) }) {
		return fmt.Sprintf("the output is %.300s and must be one of %s", r.Output, e.OneOf)
	}
	if e.Limit != "" && r.Outcome == protocol.Limit && !slices.Contains(strings.Split(e.Limit, "|"), r.Limit) {
		return fmt.Sprintf("the limit is %q and must be %q", r.Limit, e.Limit)
	}
	if e.Binding != "" || e.Operation != "" {
		switch d := r.Denial; {
		case d == nil:
			return "the result has no denial"
		case d.Binding != e.Binding && e.Binding != "":
			return fmt.Sprintf("the denial names the binding %q and must name %q", d.Binding, e.Binding)
		case d.Operation != e.Operation && e.Operation != "":
			return fmt.Sprintf("the denial names the operation %q and must name %q", d.Operation, e.Operation)
		case d.Reason == "":
			return "the denial has no reason"
		}
	}
	if e.Message != "" && !strings.Contains(r.Message, e.Message) {
		return fmt.Sprintf("the message is %.300q and must contain %q", r.Message, e.Message)
	}
	if e.Operations != nil {
		var made []string
		for _, o := range r.Operations {
			made = append(made, strings.TrimSpace(o.Binding+" "+o.Func+" "+o.Error))
		}
		if !slices.Equal(made, e.Operations) {
			return fmt.Sprintf("the operations are %.500q and must be %q", made, e.Operations)
		}
	}
	if e.Within > 0 && took > time.Duration(e.Within)*time.Millisecond {
		return fmt.Sprintf("the call took %v and may take %d ms", took.Round(time.Millisecond), e.Within)
	}
	return ""
}

// sameJSON compares two JSON texts by what they mean, with numbers as they are written.
func sameJSON(a, b []byte) bool {
	canonical := func(data []byte) ([]byte, error) {
		var v any
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		return json.Marshal(normal(v))
	}
	x, err := canonical(a)
	if err != nil {
		return false
	}
	y, err := canonical(b)
	return err == nil && bytes.Equal(x, y)
}

// normal writes each number of a decoded JSON value in one way. Integers keep all their digits.
func normal(v any) any {
	switch v := v.(type) {
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") {
			return f
		}
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = normal(v[key])
		}
	}
	return v
}

// compareArrived says what arrived at servers and should not have, or the reverse.
func (r *runner) compareArrived(c *Case) string {
	for _, name := range serverNames {
		got, want := r.servers.took(name), slices.Clone(c.Arrived[name])
		if c.Parallel {
			slices.Sort(got)
			slices.Sort(want)
		}
		if len(want) == 1 && want[0] == "*" {
			continue
		}
		if !slices.Equal(got, want) {
			return fmt.Sprintf("server %s received %q and must receive %q", name, got[:min(len(got), 20)], want)
		}
	}
	return ""
}

// lay makes the files of a case.
func lay(folder string, all map[string]File) error {
	for _, dir := range []string{"root", "outside"} {
		if err := os.Mkdir(filepath.Join(folder, dir), 0o700); err != nil {
			return err
		}
	}
	for name, f := range all {
		at := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		if f.Link != "" {
			if err := os.Symlink(strings.ReplaceAll(f.Link, "$FOLDER$", folder), at); err != nil {
				return err
			}
			continue
		}
		if err := os.WriteFile(at, []byte(*f.Text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// compareFiles says which files are not as they must be.
func compareFiles(folder string, after map[string]*string) string {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		want := after[name]
		data, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name))) //nolint:gosec // the suite names it
		switch {
		case want == nil && err == nil:
			return fmt.Sprintf("there is a file %s and must be none", name)
		case want != nil && err != nil:
			return fmt.Sprintf("there is no file %s", name)
		case want != nil && string(data) != *want:
			return fmt.Sprintf("the file %s holds %.200q and must hold %q", name, data, *want)
		}
	}
	return ""
}
