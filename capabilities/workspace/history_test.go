package workspace

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
)

// model is a workspace in its plainest form: paths to contents, "<directory>" for directories, as dump shows it.
type model map[string]string

const folder = "<directory>"

const modelFiles, modelBytes = 12, 60

// attempt runs change on a copy and keeps it if it succeeds and stays within the limits.
func (m *model) attempt(change func(model) *abi.Error) *abi.Error {
	after := maps.Clone(*m)
	if err := change(after); err != nil {
		return err
	}
	if len(after) > modelFiles && len(after) > len(*m) || after.bytes() > modelBytes && after.bytes() > m.bytes() {
		return abi.ErrExhausted
	}
	*m = after
	return nil
}

func (m model) bytes() (n int) {
	for _, content := range m {
		if content != folder {
			n += len(content)
		}
	}
	return n
}

func (m model) parents(path string) *abi.Error {
	for i := 1; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		if content, there := m[path[:i]]; there && content != folder {
			return abi.ErrInvalid
		}
		m[path[:i]] = folder
	}
	return nil
}

func (m model) put(path, content string) *abi.Error {
	if m[path] == folder {
		return abi.ErrInvalid
	}
	if err := m.parents(path); err != nil {
		return err
	}
	m[path] = content
	return nil
}

func (m model) makeDirectory(path string) *abi.Error {
	if content, there := m[path]; there && content != folder {
		return abi.ErrAlreadyExists
	}
	return m.parents(path + "/")
}

func (m model) transfer(source, target string, keep bool) *abi.Error {
	if _, there := m[source]; !there {
		return abi.ErrNotFound
	}
	if strings.HasPrefix(target+"/", source+"/") {
		return abi.ErrInvalid
	}
	if _, there := m[target]; there {
		return abi.ErrAlreadyExists
	}
	if err := m.parents(target); err != nil {
		return err
	}
	for path, content := range maps.Clone(m) {
		if strings.HasPrefix(path+"/", source+"/") {
			if !keep {
				delete(m, path)
			}
			m[target+strings.TrimPrefix(path, source)] = content
		}
	}
	return nil
}

func (m model) remove(path string, recursive bool) *abi.Error {
	if _, there := m[path]; !there {
		return abi.ErrNotFound
	}
	for other := range maps.Clone(m) {
		if strings.HasPrefix(other, path+"/") {
			if !recursive {
				return abi.ErrInvalid
			}
			delete(m, other)
		}
	}
	delete(m, path)
	return nil
}

func TestRandomHistories(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "é", "a-b", "a0"})
	path := rapid.Map(rapid.SliceOfN(name, 1, 4), func(names []string) string { return "/" + strings.Join(names, "/") })
	text := rapid.SampledFrom([]string{"", "x", "日本", "0123456789", strings.Repeat("y", 40)})
	dir, files := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		files++
		s, err := Open(t.Context(), filepath.Join(dir, fmt.Sprint(files)), Options{Files: modelFiles, Bytes: modelBytes})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		d, m := s.Workspace("w"), model{}
		same := func(t *rapid.T, got error, want *abi.Error) {
			t.Helper()
			if want == nil && got != nil || want != nil && !errors.Is(got, want) {
				t.Fatalf("got %v, want %v; before: %q", got, want, m)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				p, c := path.Draw(t, "path"), text.Draw(t, "text")
				same(t, d.Write(t.Context(), p, c), m.attempt(func(m model) *abi.Error { return m.put(p, c) }))
			},
			"append": func(t *rapid.T) {
				p, c := path.Draw(t, "path"), text.Draw(t, "text")
				same(t, d.Append(t.Context(), p, c), m.attempt(func(m model) *abi.Error { return m.put(p, strings.TrimSuffix(m[p], folder)+c) }))
			},
			"make directory": func(t *rapid.T) {
				p := path.Draw(t, "path")
				same(t, d.MakeDirectory(t.Context(), p), m.attempt(func(m model) *abi.Error { return m.makeDirectory(p) }))
			},
			"move": func(t *rapid.T) {
				p, q := path.Draw(t, "source"), path.Draw(t, "target")
				same(t, d.Move(t.Context(), p, q), m.attempt(func(m model) *abi.Error { return m.transfer(p, q, false) }))
			},
			"copy": func(t *rapid.T) {
				p, q := path.Draw(t, "source"), path.Draw(t, "target")
				same(t, d.Copy(t.Context(), p, q), m.attempt(func(m model) *abi.Error { return m.transfer(p, q, true) }))
			},
			"remove": func(t *rapid.T) {
				p, recursive := path.Draw(t, "path"), rapid.Bool().Draw(t, "recursive")
				same(t, d.Remove(t.Context(), p, recursive), m.attempt(func(m model) *abi.Error { return m.remove(p, recursive) }))
			},
			"": func(t *rapid.T) {
				if got := dump(t, d); !maps.Equal(got, m) {
					t.Fatalf("have %q, want %q", got, m)
				}
			},
		})
		sound(t, s)
	})
}
