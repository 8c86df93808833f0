package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/trees"
	"github.com/stilehost/stile/capabilities/sandbox/internal/box"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/turns"
)

const exampleAnswers = `{"npm test": {"exitCode": 0, "stdout": "ok\n"}}`

// Answer is what a command does in a test.
type Answer struct {
	ExitCode uint8  `json:"exitCode"`
	Stdout   string `json:"stdout,omitempty"`
	Stderr   string `json:"stderr,omitempty"`
	// Files are what the command writes, by their paths in the working tree. null removes a file.
	Files map[string]*string `json:"files,omitempty"`
}

// commandKey is how a test names a command: a shell's as it is, others with spaces between their arguments.
func commandKey(argv []string) string {
	if len(argv) == 3 && argv[0] == "/bin/sh" && argv[1] == "-c" {
		return argv[2]
	}
	return strings.Join(argv, " ")
}

// Double implements [double.Doubler] with a sandbox that runs nothing: its commands do what the test says.
func (g Rights) Double(_ context.Context, t *double.Test, raw json.RawMessage) (abi.Capability, error) {
	answers, err := double.Members[Answer](t, raw, exampleAnswers)
	if err != nil {
		return nil, err
	}
	for name, a := range answers {
		for p := range a.Files {
			if path.Clean("/"+p) != "/"+p {
				return nil, t.Wrong(fmt.Sprintf("[%s]: %s is no path in the working tree", double.Quoted(name), double.Quoted(p)), `a path like "src/a.txt"`)
			}
		}
	}
	grant := &Grant{limits: g.Limits.withDefaults(), allowed: g.Allow, log: slog.New(slog.DiscardHandler), make: func(context.Context) (machine, *turns.Seat, error) {
		return &simulated{test: t, answers: answers, files: memory{}}, nil, nil
	}}
	return doubledGrant{grant}, nil
}

// doubledGrant opens sandboxes whose commands and copies have ended when they are started, so that the order of events is always the same.
type doubledGrant struct{ *Grant }

// Open implements [abi.Opener].
func (g doubledGrant) Open(ctx context.Context) (any, error) {
	s, err := g.Grant.Open(ctx)
	if err != nil {
		return nil, err
	}
	return doubled{s.(*Sandbox)}, nil
}

type doubled struct{ *Sandbox }

// Start implements the method `start`.
func (d doubled) Start(ctx context.Context, c Command) (*Process, error) {
	p, err := d.Sandbox.Start(ctx, c)
	if err == nil {
		double.Until(ctx, p.Subscribe(ctx, Stage{Case: StageEnded}))
	}
	return p, err
}

// Push implements the method `push`.
func (d doubled) Push(ctx context.Context, directory Directory, to string) (*Transfer, error) {
	return settled(ctx)(d.Sandbox.Push(ctx, directory, to))
}

// Pull implements the method `pull`.
func (d doubled) Pull(ctx context.Context, directory Directory, from string) (*Transfer, error) {
	return settled(ctx)(d.Sandbox.Pull(ctx, directory, from))
}

func settled(ctx context.Context) func(*Transfer, error) (*Transfer, error) {
	return func(t *Transfer, err error) (*Transfer, error) {
		if err == nil {
			double.Until(ctx, t.Subscribe(ctx))
		}
		return t, err
	}
}

// simulated is a machine that has the answers of a test.
type simulated struct {
	test    *double.Test
	answers map[string]Answer
	mu      sync.Mutex
	files   memory
}

func (m *simulated) run(_ context.Context, p box.Process) (box.Exit, error) {
	key := commandKey(p.Args)
	a, ok := m.answers[key]
	if !ok {
		return box.Exit{}, m.test.Unanswered("the command "+double.Quoted(key), double.Quoted(key)+`: {"exitCode": 0, "stdout": ""}`)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, at := range slices.Sorted(maps.Keys(a.Files)) {
		if a.Files[at] == nil {
			delete(m.files, at)
			continue
		}
		for folder := path.Dir(at); folder != "."; folder = path.Dir(folder) {
			if _, is := m.files[folder]; !is {
				m.files[folder] = trees.Entry{Kind: trees.Directory, Mode: 0o755}
			}
		}
		if err := m.files.Write(at, 0o644, strings.NewReader(*a.Files[at])); err != nil {
			return box.Exit{}, err
		}
	}
	for stream, text := range []string{a.Stdout, a.Stderr} {
		if text != "" {
			p.Output(box.Stream(stream), []byte(text))
		}
	}
	return box.Exit{Code: int(a.ExitCode)}, nil
}

func (m *simulated) tree() tree               { return m.files }
func (m *simulated) verified() []box.Check    { return nil }
func (m *simulated) network() (string, error) { return "", nil }
func (m *simulated) name() string             { return "a test" }
func (m *simulated) close() error             { return nil }

func (m *simulated) still(f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return f()
}

// memory is a tree in memory: entries by their paths. The stamp of a file is its content.
type memory map[string]trees.Entry

func (m memory) Survey(at string, visit func(trees.Entry) error, _ func(path, reason string)) error {
	for _, p := range slices.Sorted(maps.Keys(m)) {
		rest, ok := strings.CutPrefix("/"+p, strings.TrimSuffix("/"+at, "/")+"/")
		if !ok {
			continue
		}
		e := m[p]
		e.Path = rest
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

func (m memory) Stat(at string) (*trees.Entry, error) {
	e, ok := m[at]
	if !ok {
		return nil, nil
	}
	e.Path = at
	return &e, nil
}

func (m memory) Open(at string) (io.ReadCloser, error) {
	e, ok := m[at]
	if !ok || e.Kind != trees.File {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(e.Stamp)), nil
}

func (m memory) Write(at string, mode uint32, content io.Reader) error {
	var text bytes.Buffer
	if _, err := io.Copy(&text, content); err != nil {
		return err
	}
	m[at] = trees.Entry{Mode: mode, Size: int64(text.Len()), Stamp: text.String()}
	return nil
}

func (m memory) MakeDirectory(at string, mode uint32) error {
	m[at] = trees.Entry{Kind: trees.Directory, Mode: mode}
	return nil
}

func (m memory) MakeLink(at, target string) error {
	m[at] = trees.Entry{Kind: trees.Link, Target: target, Mode: 0o777}
	return nil
}

func (m memory) Chmod(at string, mode uint32) error {
	e := m[at]
	e.Mode = mode
	m[at] = e
	return nil
}

func (m memory) Rename(at, name string) error {
	to := path.Join(path.Dir(at), name)
	for _, p := range slices.Sorted(maps.Keys(m)) {
		if p == at || strings.HasPrefix(p, at+"/") {
			m[to+strings.TrimPrefix(p, at)] = m[p]
			delete(m, p)
		}
	}
	return nil
}

func (m memory) Remove(at string) error {
	for p := range m {
		if strings.HasPrefix(p, at+"/") {
			return syscall.ENOTEMPTY
		}
	}
	delete(m, at)
	return nil
}
