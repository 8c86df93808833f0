package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/conformance"
	"github.com/stilehost/stile/conformance/adapter"
	"github.com/stilehost/stile/conformance/protocol"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

// The test program is also the host that the suite tests, so that the host has a process of its own. This variable says how wrong it is.
const hostVariable = "STILE_TEST_CONFORMANCE_HOST"

func TestMain(m *testing.M) {
	if how, ok := os.LookupEnv(hostVariable); ok {
		if err := serve(how); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve is the host: right, wrong in the way of a fault, or no host at all.
func serve(how string) (err error) {
	switch how {
	case "dies":
		return errors.New("there is nothing here")
	case "hangs":
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "babbles":
		_, err := os.Stdout.WriteString("Welcome to this host!\n")
		return err
	case "floods":
		for line := strings.Repeat("x", 1<<20); err == nil; {
			_, err = os.Stdout.WriteString(line)
		}
		return err
	}
	folder, err := os.MkdirTemp("", "stile-conformance-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	h, err := host.New(context.Background(), host.Options{CacheDir: os.Getenv("STILE_TEST_CACHE"), KeyDir: os.Getenv("STILE_TEST_CACHE")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	o := adapter.Options{Host: h, Folder: folder, Version: "test"}
	var in io.Reader = os.Stdin
	out := &locked{}
	if break_, ok := faults[how]; ok {
		break_(&o)
	}
	if op, ok := strings.CutPrefix(how, "ignore-"); ok && (op == "revoke" || op == "cancel") {
		in = deaf(in, op, func(r protocol.Response) error { return protocol.Write(out, r) })
	}
	if how == "dies-later" {
		o.Alter = func(*protocol.Call) { os.Exit(3) }
	}
	return adapter.Serve(context.Background(), in, out, o)
}

// locked is stdout for several writers.
type locked struct{ mu sync.Mutex }

func (l *locked) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return os.Stdout.Write(data)
}

// workbench has what runs of the suite share.
type workbench struct {
	tools   *toolchain.Toolchain
	cache   string
	folder  string
	program string
}

func newWorkbench(t *testing.T) *workbench {
	t.Helper()
	w := &workbench{cache: t.TempDir(), folder: t.TempDir()}
	h, err := host.New(t.Context(), host.Options{CacheDir: w.cache, KeyDir: w.cache})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if w.tools, err = toolchain.New(t.Context(), h, toolchain.Options{CacheDir: w.cache, KeyDir: w.cache}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.tools.Close(); err != nil {
			t.Error(err)
		}
	})
	if w.program, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *workbench) start(t *testing.T, how string, cases ...string) (*conformance.Report, error) {
	t.Helper()
	t.Setenv(hostVariable, how)
	t.Setenv("STILE_TEST_CACHE", w.cache)
	o := conformance.Options{Host: []string{w.program}, Toolchain: w.tools, Folder: w.folder, Patience: 20 * time.Second}
	if len(cases) > 0 {
		o.Match = func(name string) bool { return slices.Contains(cases, name) || slices.Contains(cases, path.Dir(name)) }
	}
	return conformance.Run(t.Context(), o)
}

func (w *workbench) run(t *testing.T, how string, cases ...string) *conformance.Report {
	t.Helper()
	r, err := w.start(t, how, cases...)
	if err != nil {
		t.Fatalf("%s: %v", how, err)
	}
	return r
}

func TestOurHost(t *testing.T) {
	r := newWorkbench(t).run(t, "")
	for _, c := range r.Cases {
		if c.Verdict != conformance.Pass {
			t.Errorf("%s: %s: %s", c.Verdict, c.Name, c.Why)
		}
	}
	if slices.ContainsFunc(r.Cases, func(c conformance.Outcome) bool { return c.Verdict == conformance.Skip }) {
		t.Skip("this machine lacks what the report was made with")
	}
	report, err := os.ReadFile("REPORT.md")
	if err != nil {
		t.Fatal(err)
	}
	if text := conformance.Markdown(r); !strings.Contains(string(report), text) {
		t.Errorf("REPORT.md must contain:\n%s", text)
	}
}

// Programs that are no hosts end the run with an error that says what they did.
func TestNoHosts(t *testing.T) {
	w := newWorkbench(t)
	for how, want := range map[string]string{
		"dies":       "the host program ended; its last words were:\nthere is nothing here",
		"babbles":    `the host program broke the protocol: the line "Welcome to this host!" is no message`,
		"floods":     "the host program broke the protocol: a line has more than 8388608 bytes",
		"dies-later": "gave up after 5 cases in a row: the host program ended",
	} {
		if _, err := w.start(t, how, "values"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", how, err, want)
		}
	}
}

// TestTablePrintable shows what a host said of a failure.
func TestTablePrintable(t *testing.T) {
	r := conformance.Report{Host: "x", Cases: []conformance.Outcome{{Section: "limits", Name: "a", Verdict: conformance.Fail, Why: "\x1b]0;title\x07\u202e\nmore"}}}
	if got := r.Table(); strings.ContainsAny(got, "\x1b\x07\u202e") || !strings.Contains(got, `\x1b]0;title\x07\u202e`) {
		t.Errorf("the table is %q", got)
	}
}
