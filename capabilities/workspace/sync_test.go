package workspace

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/trees"
)

// TestApply makes changes only where the directory has what it had when they were planned.
func TestApply(t *testing.T) { onBoth(t, testApply) }

func testApply(t *testing.T, d *Directory) {
	ctx := t.Context()
	write(t, d, "a", "old")
	write(t, d, "full/x", "x")
	seen := map[string]*trees.Entry{}
	survey := func() {
		clear(seen)
		if _, err := d.Survey(ctx, "", func(e trees.Entry) error { seen[e.Path] = &e; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	survey()
	file := func(path, text string, before *trees.Entry) trees.Change {
		return trees.Change{
			Path: path, Before: before, After: &trees.Entry{Path: path, Mode: 0o750, Size: int64(len(text))},
			Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil },
		}
	}
	folder := &trees.Entry{Kind: trees.Directory, Mode: 0o755}
	link := func(target string) *trees.Entry { return &trees.Entry{Kind: trees.Link, Target: target} }
	changes := []trees.Change{
		file("a", "new", seen["a"]),
		file("a", "newer", seen["a"]), // it has changed
		file("b", "b", nil),
		{Path: "full", Before: seen["full"]}, // it is not empty
		{Path: "dir", After: folder},
		file("dir/c", "c", nil),
		file("none/c", "c", nil), // there is no such folder
		{Path: "link", After: link("dir/c")},
		{Path: "out", After: link("../../x")},
		{Path: "absolute", After: link("/etc/passwd")},
		file("../x", "x", nil),
		file("x/../y", "x", nil),
	}
	outcomes, _, err := d.Apply(ctx, "", changes)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{nil, abi.ErrConflict, nil, abi.ErrConflict, nil, nil, abi.ErrConflict, nil, abi.ErrDenied, abi.ErrInvalid, abi.ErrDenied, abi.ErrInvalid} {
		if !errors.Is(outcomes[i], want) {
			t.Errorf("%s: %v, want %v", changes[i].Path, outcomes[i], want)
		}
	}
	survey()
	for i, c := range changes {
		if outcomes[i] == nil && c.After != nil && !trees.Equal(c.After, seen[c.Path]) {
			t.Errorf("%s: After is %+v, and there is %+v", c.Path, c.After, seen[c.Path])
		}
	}
	if got := read(t, d, "a") + read(t, d, "b") + read(t, d, "link"); got != "newbc" || seen["a"].Mode != 0o750 {
		t.Errorf("got %s, %+v", got, seen["a"])
	}
	var loaded []string
	if err := d.Load(ctx, []string{"a", "gone", "dir", "../a"}, func(path string, size int64, content io.Reader) error {
		text, err := io.ReadAll(content)
		loaded = append(loaded, path+string(text))
		return err
	}); err != nil || strings.Join(loaded, " ") != "anew" {
		t.Errorf("loaded %q, %v", loaded, err)
	}
	looked := 0
	if err := d.Look(ctx, []string{"a", "gone", "dir/c", "../a", "a/b"}, func(trees.Entry) error { looked++; return nil }); err != nil || looked != 2 {
		t.Errorf("looked at %d, %v", looked, err)
	}
}

// TestVersions surveys a workspace only if somebody else has changed it.
func TestVersions(t *testing.T) {
	d := opened(t, Options{}).Workspace("w")
	ctx := t.Context()
	survey := func(known string) (version string, visited int) {
		t.Helper()
		version, err := d.Survey(ctx, known, func(trees.Entry) error { visited++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return version, visited
	}
	apply := func(known string, n int) string {
		t.Helper()
		changes := make([]trees.Change, n)
		for i := range changes {
			changes[i] = trees.Change{Path: fmt.Sprintf("f%d", i), After: &trees.Entry{Size: 1}, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x")), nil }}
		}
		_, version, err := d.Apply(ctx, known, changes)
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	write(t, d, "a", "1")
	now, n := survey("")
	if again, more := survey(now); n != 1 || again != now || more != 0 {
		t.Errorf("visited %d, and then %d of version %s, %s", n, more, now, again)
	}
	if now = apply(now, 2*appliedFiles); now == "" { // in two transactions
		t.Error("its own changes are unknown")
	}
	if again, more := survey(now); again != now || more != 0 {
		t.Errorf("visited %d after its own changes, of version %s, %s", more, now, again)
	}
	write(t, d, "a", "2")
	if again, more := survey(now); again == now || more != 2*appliedFiles+1 {
		t.Errorf("visited %d after a change by somebody else", more)
	}
	if got := apply(now, 1); got != "" {
		t.Errorf("a change by somebody else before is in version %s", got)
	}
	now, _ = survey("")
	if err := d.SetMode(ctx, "a", 0o600); err != nil {
		t.Fatal(err)
	}
	if again, more := survey(now); again == now || more == 0 {
		t.Error("a mode is no change")
	}
}
