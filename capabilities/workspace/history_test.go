package workspace

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
)

// model is a workspace in its plainest form: paths to contents, "<directory>" for directories, as dump shows it.
type model map[string]string

const aFolder = "<directory>"

const modelFiles, modelBytes = 12, 60

// attempt runs change on a copy, and keeps the copy if it succeeds and stays within the limits.
func (m *model) attempt(limited bool, change func(model) *abi.Error) *abi.Error {
	after := maps.Clone(*m)
	if err := change(after); err != nil {
		return err
	}
	if !limited {
		*m = after
		return nil
	}
	if len(after) > modelFiles && len(after) > len(*m) || after.bytes() > modelBytes && after.bytes() > m.bytes() {
		return abi.ErrExhausted
	}
	*m = after
	return nil
}

func (m model) bytes() (n int) {
	for _, content := range m {
		if content != aFolder {
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
		if content, there := m[path[:i]]; there && content != aFolder {
			return abi.ErrInvalid
		}
		m[path[:i]] = aFolder
	}
	return nil
}

func (m model) put(path, content string) *abi.Error {
	if m[path] == aFolder {
		return abi.ErrInvalid
	}
	if err := m.parents(path); err != nil {
		return err
	}
	m[path] = content
	return nil
}

func (m model) makeDirectory(path string) *abi.Error {
	if content, there := m[path]; there && content != aFolder {
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

func TestRandomHistories(t *testing.T) { randomHistories(t, 25) }

func randomHistories(t *testing.T, checks int) {
	t.Helper()
	const number = "rapid.checks"
	before := flag.Lookup(number).Value.String()
	t.Cleanup(func() { _ = flag.Set(number, before) })
	if err := flag.Set(number, fmt.Sprint(checks)); err != nil {
		t.Fatal(err)
	}
	dir, files := t.TempDir(), 0
	t.Run("store", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			files++
			s, err := Open(t.Context(), filepath.Join(dir, fmt.Sprint(files)), Options{Files: modelFiles, Bytes: modelBytes})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			s.batch = rapid.SampledFrom([]int{1, 2, 3, defaultBatch}).Draw(t, "files in one transaction")
			randomHistory(t, s.Workspace("w"), true)
			sound(t, s)
		})
	})
	t.Run("disk", func(t *testing.T) {
		d := openedDisk(t, t.TempDir())
		rapid.Check(t, func(t *rapid.T) {
			files++
			sub, err := d.Sub(fmt.Sprint(files))
			if err != nil {
				t.Fatal(err)
			}
			randomHistory(t, sub, false)
		})
	})
}

// randomHistory does the same to a directory and to a model. A store has limits, history and snapshots too.
func randomHistory(t *rapid.T, d *Directory, store bool) {
	name := rapid.SampledFrom([]string{"a", "b", "é", "a-b", "a0"})
	path := rapid.Map(rapid.SliceOfN(name, 1, 4), func(names []string) string { return "/" + strings.Join(names, "/") })
	text := rapid.SampledFrom([]string{"", "x", "日本", "0123456789", strings.Repeat("y", 40)})
	d.slice = time.Hour // otherwise a search ends early on a busy machine
	m := model{}
	snapshots := map[uint64]model{}
	do := func(t *rapid.T, got error, change func(model) *abi.Error) {
		t.Helper()
		before := m
		want := m.attempt(store, change)
		if want == nil && got != nil || want != nil && !errors.Is(got, want) {
			t.Fatalf("got %v, want %v; before: %q", got, want, m)
		}
		for path, content := range before { // the newest revision has the lost content
			if store && content != aFolder && content != m[path] {
				if was := past(t, d, path, 0); was != content {
					t.Fatalf("%s was %q, and the history has %q", path, content, was)
				}
			}
		}
	}
	actions := map[string]func(*rapid.T){
		"write": func(t *rapid.T) {
			p, c := path.Draw(t, "path"), text.Draw(t, "text")
			do(t, d.Write(t.Context(), p, c), func(m model) *abi.Error { return m.put(p, c) })
		},
		"append": func(t *rapid.T) {
			p, c := path.Draw(t, "path"), text.Draw(t, "text")
			do(t, d.Append(t.Context(), p, c), func(m model) *abi.Error { return m.put(p, strings.TrimSuffix(m[p], aFolder)+c) })
		},
		"make directory": func(t *rapid.T) {
			p := path.Draw(t, "path")
			do(t, d.MakeDirectory(t.Context(), p), func(m model) *abi.Error { return m.makeDirectory(p) })
		},
		"move": func(t *rapid.T) {
			p, q := path.Draw(t, "source"), path.Draw(t, "target")
			do(t, d.Move(t.Context(), p, q), func(m model) *abi.Error { return m.transfer(p, q, false) })
		},
		"copy": func(t *rapid.T) {
			p, q := path.Draw(t, "source"), path.Draw(t, "target")
			do(t, d.Copy(t.Context(), p, q), func(m model) *abi.Error { return m.transfer(p, q, true) })
		},
		"remove": func(t *rapid.T) {
			p, recursive := path.Draw(t, "path"), rapid.Bool().Draw(t, "recursive")
			do(t, d.Remove(t.Context(), p, recursive), func(m model) *abi.Error { return m.remove(p, recursive) })
		},
		"": func(t *rapid.T) {
			if got := dump(t, d); !maps.Equal(got, m) {
				t.Fatalf("have %q, want %q", got, m)
			}
			found, err := d.Find(t.Context(), "**", 1000, nil)
			if err != nil || len(found.Paths) != len(m) {
				t.Fatalf("found %q, %v, want %q", found.Paths, err, m)
			}
		},
	}
	if store {
		actions["snapshot"] = func(t *rapid.T) {
			id, err := d.Snapshot(t.Context())
			if errors.Is(err, abi.ErrExhausted) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			snapshots[id] = maps.Clone(m)
		}
		actions["restore snapshot"] = func(t *rapid.T) {
			if len(snapshots) == 0 {
				return
			}
			id := rapid.SampledFrom(slices.Sorted(maps.Keys(snapshots))).Draw(t, "id")
			do(t, d.RestoreSnapshot(t.Context(), id), func(m model) *abi.Error {
				clear(m)
				maps.Copy(m, snapshots[id])
				return nil
			})
			if rapid.Bool().Draw(t, "remove") {
				if err := d.RemoveSnapshot(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				delete(snapshots, id)
			}
		}
		actions["restore"] = func(t *rapid.T) {
			p := path.Draw(t, "path")
			all, err := d.History(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if len(all) == 0 {
				return
			}
			i := rapid.IntRange(0, len(all)-1).Draw(t, "revision")
			was := past(t, d, p, i)
			do(t, d.Restore(t.Context(), p, all[i].ID), func(m model) *abi.Error { return m.put(p, was) })
		}
	}
	t.Repeat(actions)
}

// past is the content of the i-th revision of a path, from the newest.
func past(t *rapid.T, d *Directory, path string, i int) string {
	t.Helper()
	all, err := d.History(t.Context(), path)
	if err != nil || len(all) <= i {
		t.Fatalf("%s: %d revisions, %v", path, len(all), err)
	}
	b, err := d.ReadRevision(t.Context(), path, all[i].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	was, err := b.Text(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	return was
}
