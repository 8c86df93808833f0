// Package trial runs an extension's own tests before anybody approves it. Each test runs in a fresh instance. Its bindings
// have the real rules and limits of the manifest, but only the test's answers behind them: no network, no personal files, no
// time of this machine. An operation that the test does not foresee is denied and reported.
package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
)

const (
	// defaultWall is how long a test may take, and together is how many times as long all of them may take.
	defaultWall = 10 * time.Second
	together    = 6
)

// Request is what to test.
type Request struct {
	// Component is the extension. It stays open.
	Component *host.Component
	// Bindings are those that calls of the extension will have. Only these can have answers.
	Bindings []extension.Binding
	// Open says that calls may have other bindings too. [Probe] then takes no call as failed for want of a binding.
	Open bool
	// Packages has the folder node_modules of what the component was built from, where [Probe] looks which packages have native code. Default: it does not.
	Packages fs.FS
	// WASI says which of Bindings serve WASI.
	WASI abi.WASI
	// Vars are those of the manifest. A test gets their defaults, and what it sets.
	Vars  []extension.Var
	Tests []extension.Test
	// Skip are indexes of Tests that could not be read: they are left out.
	Skip []int
	// Limits are those of each test; zero fields have the defaults of the host, and Wall 10 s. All tests together take at
	// most six times Wall.
	Limits host.Limits
}

// Result is the outcome of a test.
type Result struct {
	Name, Tool string
	Passed     bool
	// Problem is why the test did not pass. It is nil if it passed.
	Problem *extension.Problem
	// Log is what the tool logged, at most 16 KiB in 500 lines.
	Log      []string
	Duration time.Duration
	Usage    host.Usage
}

// Run runs tests one after the other, and continues after a failure. There is a result for each, in order. If there are more than
// [extension.MaxTests], one more result says so. Errors are faults of the host and the end of ctx; earlier tests have their results.
func Run(ctx context.Context, r Request) ([]Result, error) {
	r.Limits.Wall = cmp.Or(r.Limits.Wall, defaultWall)
	end := time.Now().Add(together * r.Limits.Wall)
	var results []Result
	for i, test := range r.Tests {
		if i == extension.MaxTests {
			problem := inManifest(test, &double.MistakeError{Text: fmt.Sprintf("tests: there are %d", len(r.Tests)), Fix: fmt.Sprintf("at most %d", extension.MaxTests)})
			return append(results, Result{Name: test.Name, Tool: test.Tool, Problem: problem}), nil
		}
		if slices.Contains(r.Skip, i) {
			results = append(results, Result{Name: test.Name, Tool: test.Tool})
			continue
		}
		result, err := run(ctx, r, i, end)
		if err != nil {
			return results, fmt.Errorf("test %s: %w", double.Quoted(test.Name), err)
		}
		results = append(results, result)
	}
	return results, nil
}

// Answers returns the problems of answers that tests give and that their bindings do not take, without running the tests. Answers of other
// bindings than those of r are left out. An error is a fault of the host.
func Answers(ctx context.Context, r Request) (found []extension.Problem, err error) {
	for i, test := range r.Tests[:min(len(r.Tests), extension.MaxTests)] {
		if slices.Contains(r.Skip, i) {
			continue
		}
		at := fmt.Sprintf("tests[%d]", i)
		test.Name = cmp.Or(test.Name, at)
		for _, b := range r.Bindings {
			if test.Env[b.Name] == nil {
				continue
			}
			e := newEnvironment()
			_, err := e.capability(ctx, e.test(at, b.Name), b, test.Env[b.Name])
			if closed := e.stores.Close(); closed != nil {
				return found, closed
			}
			if wrong, ok := errors.AsType[*double.MistakeError](err); ok {
				found = append(found, *inManifest(test, wrong))
			} else if err != nil {
				return found, fmt.Errorf("test %s: %w", double.Quoted(test.Name), err)
			}
		}
	}
	return found, nil
}

// run runs one test, which must finish by end.
func run(ctx context.Context, r Request, i int, end time.Time) (result Result, err error) {
	test, began := r.Tests[i], time.Now()
	left := end.Sub(began)
	result = Result{Name: test.Name, Tool: test.Tool}
	at := fmt.Sprintf("tests[%d]", i)
	test.Name = cmp.Or(test.Name, at) // distinguishes it from others in messages
	if left <= 0 {
		result.Problem = problem(test, fmt.Sprintf("it was not run, because earlier tests used up the %s that all tests share", together*r.Limits.Wall))
		return result, nil
	}
	r.Limits.Wall = min(r.Limits.Wall, left)

	e := newEnvironment()
	defer func() {
		err = errors.Join(err, e.stores.Close())
		result.Log, result.Passed, result.Duration = e.log, result.Problem == nil && err == nil, time.Since(began)
	}()
	env, err := e.bind(ctx, at, r.Bindings, test.Env)
	if err == nil && (test.Expect == nil) == (test.Error == "") {
		err = &double.MistakeError{Text: at + ": a test needs either expect or error", Fix: `"expect": {} or "error": "what it says"`}
	}
	if wrong, ok := errors.AsType[*double.MistakeError](err); ok {
		result.Problem = inManifest(test, wrong)
		return result, nil
	}
	if err != nil {
		return result, err
	}
	made, err := r.Component.Do(ctx, host.Request{Tool: test.Tool, Input: test.Input, Env: env, WASI: r.WASI, Vars: extension.VarsText((&extension.Manifest{Vars: r.Vars}).Configure(test.Vars)), Limits: r.Limits, Idle: e.clock.Move})
	result.Usage = made.Usage
	result.Problem, err = e.judge(test, made.Output, err)
	if fault := e.stores.Fault(); fault != nil && result.Problem != nil {
		return result, fmt.Errorf("keep the files of the test: %w", fault) // no test is at fault
	}
	return result, err
}
