package contenders

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/bench"
	"github.com/stilehost/stile/conformance/adapter"
	"github.com/stilehost/stile/conformance/protocol"
	"github.com/stilehost/stile/host"
)

// The test program is also the hosts that are measured: ours, and wrong ones.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		if err := serve(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func serve(how string) (err error) {
	switch how {
	case "dies":
		return errors.New("there is nothing here")
	case "lies":
		return answer(func(r protocol.Request) protocol.Response {
			return protocol.Response{Result: &protocol.Result{Outcome: protocol.OK, Output: `{"id": "stored"}`}}
		})
	case "dies-later":
		return answer(func(protocol.Request) protocol.Response {
			fmt.Fprintln(os.Stderr, "it was too much")
			os.Exit(3)
			return protocol.Response{}
		})
	case "denies":
		return answer(func(protocol.Request) protocol.Response {
			return protocol.Response{Result: &protocol.Result{Outcome: protocol.Refused, Message: "no such section"}}
		})
	}
	folder, err := os.MkdirTemp("", "stile-bench-test-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	h, err := host.New(context.Background(), host.Options{CacheDir: folder, KeyDir: folder})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	return adapter.Serve(context.Background(), os.Stdin, os.Stdout, adapter.Options{Host: h, Folder: folder, Version: "test", Without: []string{"browser"}})
}

// answer is a host that says hello and answers everything else in one way.
func answer(other func(protocol.Request) protocol.Response) error {
	for in := protocol.NewReader(os.Stdin); ; {
		var r protocol.Request
		if err := in.Read(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		out := protocol.Response{Hello: &protocol.Hello{Protocol: protocol.Version, Name: "wrong", Kinds: []string{}}}
		if r.Op != "hello" {
			out = other(r)
		}
		out.ID = r.ID
		if err := protocol.Write(os.Stdout, out); err != nil {
			return err
		}
	}
}

// measureHost measures a host beside ours and returns the report.
func measureHost(t *testing.T, command ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	err = bench.Run(t.Context(), bench.Options{
		Own: Own, Only: []string{"hosts"}, Hosts: [][]string{command}, Dir: dir,
		Size:      bench.Size{Rounds: 2, Trials: [3]int{4, 2, 2}, Live: 20, Window: 100 * time.Millisecond},
		Workbench: bench.Workbench{Cache: t.TempDir(), Stile: self, Engine: os.Getenv("STILE_ENGINE")},
	})
	if err != nil {
		return "", err
	}
	path, err := bench.Report(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// TestJco measures the second host of the conformance suite.
func TestJco(t *testing.T) {
	others(t)
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(filepath.Join("..", "..", "conformance", "jco"))); err != nil {
		t.Fatal(err)
	}
	npm := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	npm.Dir = folder
	if out, err := npm.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	report, err := measureHost(t, "node", filepath.Join(folder, "host.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(report, "| figure | stile test | jco ") || strings.Contains(report, "| - |") {
		t.Errorf("a figure is missing:\n%s", report)
	}
}

// A host of the protocol is measured beside ours.
func TestHosts(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	report, err := measureHost(t, self, "itself")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| figure | stile test | stile test, number 2 | over stile test |", "| first call of a component", "| calls a second, 16 callers |", "| a call that makes one request |"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
}

// A wrong host ends the run with an error that says what it did.
func TestWrongHosts(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for how, want := range map[string]string{
		"dies":       "the host program ended; its last words were:\nthere is nothing here",
		"dies-later": "the host program ended; its last words were:\nit was too much",
		"lies":       `a wrong answer: "{\"id\": \"stored\"}" instead of `,
		"denies":     `the call ended as "refused": no such section`,
	} {
		h := &spokenHost{command: []string{self, how}, env: bench.Environment()}
		err := h.open(t.Context())
		if err == nil {
			_, err = h.compute(t.Context(), "tool.wasm", bench.StoredID, 1)
		}
		if h.Host != nil {
			h.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", how, err, want)
		}
	}
}
