package toolchain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/console"
	httpcap "github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
)

// scripts runs the files of testdata/js as tools, in the engine and against real capabilities.
type scripts struct {
	tree      fstest.MapFS
	toolchain *Toolchain
	site      string
	kv        *kv.Store
	workspace *workspace.Store
}

func newScripts(t *testing.T) *scripts {
	t.Helper()
	contacts, err := os.ReadFile("testdata/js/contacts.wit")
	if err != nil {
		t.Fatal(err)
	}
	cacheDir, keyDir := cachetest.Dirs(t)
	h, err := host.New(t.Context(), host.Options{WIT: []string{string(contacts)}, Wants: capabilities.Builtin.Wants})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	s := &scripts{tree: fstest.MapFS{}, site: site(t)}
	if s.toolchain, err = New(t.Context(), h, Options{CacheDir: cacheDir, KeyDir: keyDir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.toolchain.Close() })
	if s.kv, err = kv.Open(t.Context(), filepath.Join(t.TempDir(), "kv"), kv.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.kv.Close() })
	if s.workspace, err = workspace.Open(t.Context(), filepath.Join(t.TempDir(), "workspace"), workspace.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.workspace.Close() })
	files, err := filepath.Glob("testdata/js/*.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s.tree[filepath.Base(file)] = &fstest.MapFile{Data: text}
	}
	return s
}

// build makes an extension from a file, and the env that its first line requests. log receives the console output.
func (s *scripts) build(t *testing.T, file, entry string, log func(console.Level, string)) (*host.Component, host.Env) {
	t.Helper()
	first, _, _ := strings.Cut(string(s.tree[file].Data), "\n")
	source := Source{FS: s.tree, Entry: entry}
	if strings.Contains(first, "workspace") {
		source.Files = "workspace"
	}
	c, err := s.toolchain.Build(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	env := host.Env{}
	names, ok := strings.CutPrefix(first, "// bindings:")
	if !ok {
		t.Fatalf("%s does not begin with its bindings", file)
	}
	for name := range strings.SplitSeq(names, ",") {
		switch name = strings.TrimSpace(name); name {
		case "":
		case "blobs":
			env[name] = blob.NewStore(blob.StoreOptions{})
		case "clock":
			env[name] = clock.System()
		case "console":
			env[name] = console.To(log)
		case "crm":
			env[name] = &contacts{}
		case "kv":
			env[name] = s.kv.Bucket(file)
		case "network":
			rule, err := httpcap.ParseRule(s.site + "/**,methods=GET+POST,headers=x-a")
			if err != nil {
				t.Fatal(err)
			}
			env[name] = httpcap.Allow(rule)
		case "random":
			env[name] = random.System()
		case "workspace":
			env[name] = s.workspace.Workspace(file)
		default:
			t.Fatalf("%s: no binding is called %s", file, name)
		}
	}
	return c, env
}

// site is the server that testdata/js/fetch.ts describes.
func site(t *testing.T) string {
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		headers := map[string]string{}
		for name := range r.Header {
			headers[strings.ToLower(name)] = r.Header.Get(name)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "headers": headers, "body": string(body)})
	})
	mux.HandleFunc("/bytes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write([]byte{0xff, 0x00, 0xef, 0x0a})
	})
	mux.HandleFunc("/events", func(w http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			if i == 1 && r.URL.Query().Has("hang") {
				<-r.Context().Done()
			}
		}
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("large ", 100_000))
	})
	mux.Handle("/moved", http.RedirectHandler("/echo", http.StatusFound))
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestScripts(t *testing.T) {
	s := newScripts(t)
	for file := range s.tree {
		if slices.Contains([]string{"assert.ts", "failures.ts"}, file) {
			continue
		}
		t.Run(file, func(t *testing.T) {
			tree := s.tree
			defer func() { s.tree = tree }()
			s.tree = fstest.MapFS{"entry.ts": &fstest.MapFile{Data: fmt.Appendf(nil, `import run from "./%s";
import { extension } from "stile";
export default extension({ tools: { test: { description: "Runs a script", run } } });`, file)}}
			maps.Copy(s.tree, tree)
			var logged [][2]string
			c, env := s.build(t, file, "entry.ts", func(level console.Level, message string) {
				logged = append(logged, [2]string{level.String(), message})
			})
			var recorded recorder
			result, err := c.Do(t.Context(), host.Request{
				Tool: "test", Input: fmt.Appendf(nil, `{"site": %q}`, s.site), Env: env, Recorder: &recorded,
				Limits: host.Limits{CPU: 30 * time.Second}, // with the tag packed, each of thousands of waits costs milliseconds
			})
			out := result.Output
			if failed, ok := errors.AsType[*host.GuestError](err); ok {
				t.Fatalf("%s: %s\n%s", failed.Failure.Name, failed.Failure.Message, failed.Failure.Stack)
			}
			if err != nil {
				t.Fatal(err)
			}
			recorded.replay(t, c)
			if string(out) == "null" {
				return
			}
			// A script returns the lines that it should have logged.
			var want [][2]string
			if err := json.Unmarshal(out, &want); err != nil {
				t.Fatal(err)
			}
			for at, line := range want {
				if at >= len(logged) || logged[at] != line {
					t.Fatalf("line %d of the log: got %q, want %q", at, logged[min(at, len(logged)):], line)
				}
			}
		})
	}
}

// Whatever a tool throws or returns, its call ends with the error in its description.
func TestFailures(t *testing.T) {
	s := newScripts(t)
	c, env := s.build(t, "failures.ts", "failures.ts", nil)
	tools, err := c.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		t.Run(tool.Name, func(t *testing.T) {
			var want struct {
				Failed    *abi.Failure
				Denied    *abi.Denial
				Exhausted string
				Invalid   []abi.Problem `json:"invalid-input"`
			}
			if err := json.Unmarshal([]byte(tool.Description), &want); err != nil {
				t.Fatal(err)
			}
			_, err := c.Call(t.Context(), tool.Name, []byte("{}"), env)
			var failed *host.GuestError
			var limit *host.LimitError
			var input *host.InputError
			switch {
			case want.Failed != nil:
				if !errors.As(err, &failed) || failed.Failure.Name != want.Failed.Name || failed.Failure.Message != want.Failed.Message {
					t.Errorf("got %v, want %+v", err, *want.Failed)
				}
			case want.Denied != nil:
				// The host made no such denial, so the tool's claim is not trusted.
				if !errors.As(err, &failed) || !strings.Contains(failed.Failure.Message, want.Denied.Operation+": "+want.Denied.Reason) {
					t.Errorf("got %v, want a claim of %+v", err, *want.Denied)
				}
			case want.Exhausted != "":
				name, _, _ := strings.Cut(want.Exhausted, ":")
				if !errors.As(err, &limit) || limit.Limit != name {
					t.Errorf("got %v, want the limit %s", err, name)
				}
			default:
				if !errors.As(err, &input) || !slices.Equal(input.Problems, want.Invalid) {
					t.Errorf("got %v, want %+v", err, want.Invalid)
				}
			}
		})
	}
}

// contacts is an embedder's capability: the resource `directory` of testdata/js/contacts.wit.
type contacts struct{ all []contact }

type contact struct {
	Name  string
	Email *string
	Kind  string
	Tags  struct{ Vip, Muted bool }
}

func (*contacts) Interface() string { return "acme:crm/contacts@1.0.0" }

func (c *contacts) Add(_ context.Context, added contact) uint64 {
	c.all = append(c.all, added)
	return uint64(len(c.all))
}

func (c *contacts) Find(_ context.Context, name string) *contact {
	at := slices.IndexFunc(c.all, func(known contact) bool { return known.Name == name })
	if at < 0 {
		return nil
	}
	return &c.all[at]
}

func (c *contacts) Remove(_ context.Context, id uint64) error { return fmt.Errorf("no contact %d", id) }

func (c *contacts) Group(_ context.Context, ids []uint64) *group { return &group{ids} }

type group struct{ ids []uint64 }

// groupMember is the variant `member`. Its payload is present for the first case, `known`.
type groupMember struct {
	Case  int
	Known *uint64
}

func (g *group) Size(context.Context) uint32 { return uint32(len(g.ids)) }

func (g *group) MemberAt(_ context.Context, index uint32) groupMember {
	if int(index) >= len(g.ids) {
		return groupMember{Case: 1}
	}
	return groupMember{Known: &g.ids[index]}
}

func (g *group) Merge(_ context.Context, other *group) { g.ids = append(g.ids, other.ids...) }

func (g *group) Subscribe(context.Context) *abi.Pollable { return abi.Ready() }
