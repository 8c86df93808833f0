package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/toolchain"
)

// asBundler is the first argument that makes this program an Options.Bundler. The second is the file to which it adds a line.
const asBundler = "as-bundler"

func serveAsBundler() error {
	log, err := os.OpenFile(os.Args[2], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := log.WriteString("bundled\n"); err != nil {
		return err
	}
	if err := log.Close(); err != nil {
		return err
	}
	return toolchain.Bundle(os.Stdin, os.Stdout)
}

// keeper counts the components that it receives.
type keeper struct {
	host.Recorder
	kept []int // their sizes
}

func (k *keeper) Keep(_ context.Context, wasm []byte) error {
	k.kept = append(k.kept, len(wasm))
	return nil
}

func (*keeper) Record(context.Context, *host.Recording) {}

// Between a draft and the answer of its tool, the source is bundled once and the component is loaded once.
func TestWriteDoesEachThingOnce(t *testing.T) {
	h := newHome(t)
	log := filepath.Join(t.TempDir(), "bundled")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cacheDir, keyDir := cachetest.Dirs(t)
	h.options.Bundler = []string{os.Args[0], asBundler, log}
	tools, err := toolchain.New(t.Context(), sharedHost, toolchain.Options{CacheDir: cacheDir, KeyDir: keyDir, Bundler: h.options.Bundler})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tools.Close() })
	h.options.Toolchain = func(context.Context) (*toolchain.Toolchain, error) { return tools, nil }
	k := &keeper{}
	h.options.Recorder = k
	m := h.open()
	want := rand.IntN(1 << 50) // not in any cache
	const padding = 40 << 10   // more than this process bundles itself
	d := tool("answer", "get", fmt.Sprintf("export function get(): number { return %d }\n//%s", want, strings.Repeat(" ", padding)), "")
	w := write(t, m, d)
	if bundled, err := os.ReadFile(log); err != nil || string(bundled) != "bundled\n" {
		t.Errorf("%q, %v", bundled, err)
	}
	l := m.loaded.all[w.Version.Digest]
	if l == nil || l.component == nil || len(k.kept) != 0 {
		t.Fatalf("%+v, kept %v", l, k.kept)
	}
	loaded := l.component
	for range 2 {
		r, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "answer_get"})
		if err != nil || string(r.Output) != fmt.Sprint(want) {
			t.Errorf("%s, %v", r.Output, err)
		}
	}
	if l := m.loaded.all[w.Version.Digest]; l.component != loaded || len(k.kept) != 1 || k.kept[0] < padding {
		t.Errorf("%p, %p, kept %v", l.component, loaded, k.kept)
	}
	// Calls of a version that was written here read nothing.
	const other = "2"
	write(t, m, draft("other", other, ""))
	if err := m.db.Update(t.Context(), func(c *sqlite.Conn) error {
		_, err := c.Exec(t.Context(), "UPDATE object SET data = x'00'")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if r, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "other_get"}); err != nil || string(r.Output) != other {
		t.Errorf("%s, %v", r.Output, err)
	}
}

// Waiting versions are not kept loaded, nor are versions that are active already.
func TestWriteKeepsWhatIsActive(t *testing.T) {
	h := newHome(t)
	m := h.open()
	pending := write(t, m, draft("waits", "1", `{"network": ["api.example.test"]}`))
	if pending.Release.State != Pending || len(m.loaded.all) != 0 {
		t.Errorf("%s, %d are loaded", pending.Release.State, len(m.loaded.all))
	}
	for range 2 {
		if write(t, m, draft("answer", "1", "")); len(m.loaded.all) != 1 {
			t.Errorf("%d are loaded", len(m.loaded.all))
		}
	}
}

// Components of large extensions are unloaded when they take much memory together, and load again when they are called.
func TestLoadedBytes(t *testing.T) {
	h := newHome(t)
	const most, large = 48 << 20, 10 << 20
	h.options.LoadedBytes = most
	m := h.open()
	used := func() (sum int64) {
		for _, l := range m.loaded.all {
			sum += l.bytes
		}
		if sum != m.loaded.bytes {
			t.Errorf("%d bytes are counted, %d are loaded", m.loaded.bytes, sum)
		}
		return sum
	}
	for _, c := range []struct{ name, before, field string }{
		{"memory", fmt.Sprintf("const many = new Uint8Array(%d).fill(7);", large), "run: async () => many.length"},
		{"schemas", "const many = new Array(100_000).fill(0);", fmt.Sprintf("output: { type: \"number\", default: many }, run: async () => %d", large)},
	} {
		for i := range 4 {
			name := fmt.Sprintf("%s-%c", c.name, 'a'+i)
			source := fmt.Sprintf(`import { extension } from "stile"; %s export default extension({ tools: { get: { description: "%d", input: { type: "object" }, %s } } });`, c.before, i, c.field)
			w := write(t, m, tool(name, "get", source, ""))
			if l := m.loaded.all[w.Version.Digest]; l == nil || l.bytes < large {
				t.Fatalf("%s: %+v", name, l)
			}
			if sum := used(); sum > most {
				t.Errorf("%s: %d bytes stay loaded", name, sum)
			}
		}
		for i := range 4 {
			r, err := m.Call(t.Context(), Call{Viewer: agent, Tool: fmt.Sprintf("%s_%c_get", c.name, 'a'+i)})
			if sum := used(); err != nil || string(r.Output) != fmt.Sprint(large) || sum > most || sum < large {
				t.Errorf("%s, %v, %d bytes stay loaded", r.Output, err, sum)
			}
		}
	}
}

// TestLoadedBytesInUse has agents' calls use so many large components at once that there is no room for more. An agent gets a quarter of it, and
// all have room again when the calls have ended.
func TestLoadedBytesInUse(t *testing.T) {
	h := newHome(t)
	const large = 4 << 20
	h.options.LoadedBytes = 90 << 20
	m := h.open()
	for i := range 8 {
		source := fmt.Sprintf(`import { extension } from "stile"; const many = new Uint8Array(%d).fill(%d); export default extension({ tools: { get: { description: "d", input: { type: "object" }, run: async () => many.length } } });`, large, i)
		write(t, m, tool(fmt.Sprintf("large-%c", 'a'+i), "get", source, ""))
	}
	used := map[string]int64{}
	var ends []func()
	var refused []error
	for who := range 6 {
		for i := range 8 {
			m.mu.RLock()
			o, ok := m.find(agent, fmt.Sprintf("large_%c_get", 'a'+(who+i)%8))
			m.mu.RUnlock()
			if !ok {
				t.Fatal("there is no tool")
			}
			name := fmt.Sprintf("agent:%d", who)
			_, done, err := m.load(t.Context(), o.release, name)
			if err != nil {
				refused = append(refused, err)
				continue
			}
			ends = append(ends, done)
			used[name] += m.loaded.all[o.release.digest].bytes
			if n := m.loaded.uses.Size(name); n != used[name] {
				t.Errorf("%s uses %d bytes, and it counts %d", name, used[name], n)
			}
		}
	}
	for name, bytes := range used {
		if bytes > h.options.LoadedBytes/ownShare {
			t.Errorf("%s uses %d bytes", name, bytes)
		}
	}
	if m.loaded.bytes > h.options.LoadedBytes || len(refused) == 0 || len(used) < ownShare {
		t.Errorf("%d bytes are loaded for %d agents, %d refusals", m.loaded.bytes, len(used), len(refused))
	}
	for _, err := range refused {
		if limit, ok := errors.AsType[*host.LimitError](err); !ok || !strings.Contains(err.Error(), "try again") {
			t.Errorf("%v, %v", limit, err)
		}
	}
	for _, done := range ends {
		done()
	}
	for name := range used {
		if n := m.loaded.uses.Size(name); n != 0 {
			t.Errorf("%s uses %d bytes afterwards", name, n)
		}
	}
	for i := range 8 {
		if _, err := m.Call(t.Context(), Call{Viewer: agent, Tool: fmt.Sprintf("large_%c_get", 'a'+i)}); err != nil {
			t.Error(err)
		}
	}
}

// TestLoadsWaitForRoom loads a large and a small version while there is no room for large ones.
func TestLoadsWaitForRoom(t *testing.T) {
	h := newHome(t)
	m := h.open()
	const source = `import { extension } from "stile"; export default extension({ tools: { get: { description: "d", input: { type: "object" }, run: async () => 1 } } });`
	large := write(t, m, tool("large", "get", source, ""))
	small := write(t, m, tool("small", "get", source, ""))
	if err := m.db.Update(t.Context(), func(c *sqlite.Conn) error {
		_, err := c.Exec(t.Context(), "UPDATE content SET component = ? WHERE version = ?", 2*smallVersion, large.Version.Digest)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = h.open()
	if err := m.loading.large.TakeFor(t.Context(), "another agent", maxLoading); err != nil {
		t.Fatal(err)
	}
	call := func(ctx context.Context, w *Written) error {
		_, err := m.Call(ctx, Call{Viewer: agent, Tool: w.Version.Manifest.Name + "_get"})
		return err
	}
	if err := call(t.Context(), small); err != nil {
		t.Error(err)
	}
	short, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- call(short, large) }()
	for m.loading.large.Waiting() == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	m.loading.large.GiveBack(maxLoading)
	if err := call(t.Context(), large); err != nil {
		t.Error(err)
	}
}

// An overview of large extensions takes a small part of what their tools' descriptions have.
func TestOverview(t *testing.T) {
	m := newHome(t).open()
	const tools, size = largeTools, largeDescription
	write(t, m, large("large"))
	for _, c := range []struct {
		name string
		list func(context.Context, Viewer) ([]Extension, error)
		each int
	}{
		{"list", m.List, listed},
		{"overview", m.Overview, listed},
		{"statistics", m.Statistics, 0},
		{"all", func(ctx context.Context, _ Viewer) ([]Extension, error) { return m.ListAll(ctx) }, listed},
		{"one", func(ctx context.Context, _ Viewer) ([]Extension, error) {
			e, err := m.State(ctx, own, "large")
			return []Extension{e}, err
		}, size},
	} {
		list, err := c.list(t.Context(), agent)
		if err != nil || len(list) != 1 || len(list[0].Tools) != tools {
			t.Fatalf("%s: %d, %v", c.name, len(list), err)
		}
		for _, tool := range list[0].Tools {
			if len(tool.Description) != c.each {
				t.Errorf("%s: %s has %d bytes", c.name, tool.Name, len(tool.Description))
			}
		}
	}
}

const (
	largeTools       = 100
	largeDescription = 16_000 // bytes of each tool's
)

// large is an extension whose definitions have about 1.6 MB.
func large(name string) Draft {
	names := make([]string, largeTools)
	for i := range names {
		names[i] = fmt.Sprintf("get%d", i)
	}
	source := fmt.Sprintf(`import { extension } from "stile"; const tools: any = {};
		for (let i = 0; i < %d; i++) tools["get" + i] = { description: ("%s" + i).padEnd(%d, "x"), input: { type: "object" }, run: async () => 1 };
		export default extension({ tools });`, largeTools, name, largeDescription)
	return tool(name, strings.Join(names, ","), source, "")
}

// TestListAll checks that a list of all scopes has each extension once, the scopes in order, and what waits.
func TestListAll(t *testing.T) {
	m := newHome(t).open()
	shared, other := extension.Scope{Kind: extension.Shared}, extension.Scope{Kind: extension.Agent, Owner: "b"}
	for _, scope := range []extension.Scope{shared, other, own} {
		d := draft("notes", strconv.Quote(scope.String()), "")
		if scope != shared {
			d.Author = scope.String()
		}
		d.Scope = scope
		write(t, m, d)
	}
	list, err := m.ListAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var scopes []extension.Scope
	for _, e := range list {
		if scopes = append(scopes, e.Scope); len(e.Tools) != 1 || e.Tools[0].ShadowedBy != nil || (e.Pending == nil) == (e.Active == nil) {
			t.Errorf("got %+v", e)
		}
	}
	if want := []extension.Scope{own, other, shared}; !slices.Equal(scopes, want) {
		t.Errorf("scopes %v, want %v", scopes, want)
	}
	if e, err := m.State(t.Context(), other, "nothing"); err != nil || e.Name != "" {
		t.Errorf("got %+v, %v", e, err)
	}
}

// A set closes each component that it receives, wherever the component stays.
func TestLoadedSetOwnsWhatItIsGiven(t *testing.T) {
	h := newHome(t)
	m := h.open()
	first, second, third := write(t, m, draft("a", "1", "")), write(t, m, draft("b", "2", "")), write(t, m, draft("c", "3", ""))
	load := func(w *Written) *host.Component {
		var wasm []byte
		if err := m.db.Read(t.Context(), func(c *sqlite.Conn) (err error) { wasm, err = object(t.Context(), c, w.Version.Component); return err }); err != nil {
			t.Fatal(err)
		}
		c, err := sharedHost.Load(t.Context(), wasm)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	closed := func(c *host.Component) bool {
		_, err := c.Do(t.Context(), host.Request{Tool: "get"})
		return err != nil
	}
	s := newLoadedSet(1, 1)
	a, again, b, c := load(first), load(first), load(second), load(third)
	s.put("a", a, 0)
	s.put("a", again, 0)
	if closed(a) || !closed(again) {
		t.Error("the first one stays, and the second one does not")
	}
	s.put("b", b, 0)
	if !closed(a) || closed(b) {
		t.Error("there is room for one")
	}
	if err := s.closeAll(); err != nil {
		t.Error(err)
	}
	s.put("c", c, 0)
	if !closed(b) || !closed(c) {
		t.Error("a set that is closed keeps nothing")
	}
}
