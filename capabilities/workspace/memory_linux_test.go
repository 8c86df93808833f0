package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/usagetest"
)

// memories are operations with the largest inputs, and how many MiB one may take in addition to its input, with its result and
// the memory that Go has not collected yet.
var memories = map[string]struct {
	most int
	make func(d *Directory) (func(ctx context.Context) error, any)
}{
	"read": {44, func(d *Directory) (func(context.Context) error, any) {
		return func(ctx context.Context) error { _, err := d.Read(ctx, "large"); return err }, nil
	}},
	"read with digest": {44, func(d *Directory) (func(context.Context) error, any) {
		return func(ctx context.Context) error { _, err := d.ReadWithDigest(ctx, "large", 1<<30); return err }, nil
	}},
	"read lines": {44, func(d *Directory) (func(context.Context) error, any) {
		return func(ctx context.Context) error { _, err := d.ReadLines(ctx, "large", 1, nil); return err }, nil
	}},
	"edit": {60, func(d *Directory) (func(context.Context) error, any) {
		all := make([]Replacement, maxReplacements)
		for i := range all {
			all[i] = Replacement{marker(i), "y"}
		}
		return func(ctx context.Context) error { return d.Edit(ctx, "marked", all) }, all
	}},
	"edit to what is too large": {12, func(d *Directory) (func(context.Context) error, any) {
		all := []Replacement{{"x", strings.Repeat("y", abi.MaxText)}}
		return func(ctx context.Context) error {
			if err := d.Edit(ctx, "large", all); !errors.Is(err, abi.ErrTooLarge) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		}, all
	}},
	"edit into a large text": {24, func(d *Directory) (func(context.Context) error, any) {
		all := []Replacement{{"small", strings.Repeat("y", abi.MaxText)}}
		return func(ctx context.Context) error { return d.Edit(ctx, "small", all) }, all
	}},
	"write": {12, func(d *Directory) (func(context.Context) error, any) {
		text := strings.Repeat("y", abi.MaxText)
		return func(ctx context.Context) error { return d.Write(ctx, "new", text) }, text
	}},
	"replace": {12, func(d *Directory) (func(context.Context) error, any) {
		text := strings.Repeat("y", abi.MaxText)
		return func(ctx context.Context) error { _, err := d.Replace(ctx, "replaced", text, nil); return err }, text
	}},
	"append": {12, func(d *Directory) (func(context.Context) error, any) {
		text := strings.Repeat("y", abi.MaxText)
		return func(ctx context.Context) error { return d.Append(ctx, "other", text) }, text
	}},
	"grep": {32, func(d *Directory) (func(context.Context) error, any) {
		return func(ctx context.Context) error {
			_, err := d.Grep(ctx, "x(a|b)c", Search{}, 1000, nil)
			return err
		}, nil
	}},
	"diff": {60, func(d *Directory) (func(context.Context) error, any) {
		return func(ctx context.Context) error { _, err := d.Diff(ctx, "mib1", "mib2"); return err }, nil
	}},
	"grep for what repeats": {24, func(d *Directory) (func(context.Context) error, any) {
		return func(ctx context.Context) error {
			for _, pattern := range []string{
				"^(?:" + strings.Repeat("()", 490) + "){1000}$", "(?:" + strings.Repeat("a?", 490) + "){1000}", "(?:" + strings.Repeat("a", 1000) + "){1000}",
				strings.Repeat("(){1000}", 120), strings.Repeat(`\pL{1000}`, 110), "(?:(?:(?:" + strings.Repeat("[^a]", 240) + "){10}){10}){10}",
			} {
				if _, err := d.Grep(ctx, pattern, Search{}, 1000, nil); !errors.Is(err, abi.ErrInvalid) {
					return fmt.Errorf("%.20s: got %w", pattern, err)
				}
			}
			return nil
		}, nil
	}},
	"disk: list": {12, func(d *Directory) (func(context.Context) error, any) {
		return func(ctx context.Context) error { _, err := d.List(ctx, "many", 1000, nil); return err }, nil
	}},
	"copy": {16, func(d *Directory) (func(context.Context) error, any) {
		return func(ctx context.Context) error { return d.Copy(ctx, "dir", "copy") }, nil
	}},
}

// disk is the prefix of operations on a directory on disk, and the directory's name beside the store.
const disk = "disk"

func marker(i int) string { return fmt.Sprintf("<%07d>%s", i, strings.Repeat("x", 500)) }

// TestMemory runs each operation in a separate process and measures how far that process's peak memory rose.
func TestMemory(t *testing.T) {
	if wanted := os.Getenv("STILE_TEST_MEMORY"); wanted != "" {
		name, file, _ := strings.Cut(wanted, ";")
		remember(t, name, file)
		return
	}
	file := filepath.Join(t.TempDir(), "ws.db")
	s, err := Open(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := s.Workspace("w")
	bushy(t, d, "dir")
	line := strings.Repeat("x", 99) + "\n"
	write(t, d, "large", strings.Repeat(line, abi.MaxText/len(line)))
	write(t, d, "small", "small")
	var marked strings.Builder
	for i := range maxReplacements {
		marked.WriteString(marker(i) + strings.Repeat("z", abi.MaxText/maxReplacements-600))
	}
	write(t, d, "marked", marked.String())
	for i := range 2 {
		var lines strings.Builder
		for n := 0; lines.Len() < 1<<20-10; n++ {
			fmt.Fprintln(&lines, n*(i+1))
		}
		write(t, d, fmt.Sprint("mib", i+1), lines.String())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	many := filepath.Join(filepath.Dir(file), disk, "many")
	if err := os.MkdirAll(many, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 60_000 {
		if err := os.Symlink("x", fmt.Sprintf("%s/%s%06d", many, strings.Repeat("n", 240), i)); err != nil {
			t.Fatal(err)
		}
	}
	for name, m := range memories {
		kib, out, err := usagetest.Grown(t, "TestMemory", "STILE_TEST_MEMORY="+name+";"+file)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		if kib > m.most<<10 {
			t.Errorf("%s: grown by %d KiB, want at most %d MiB", name, kib, m.most)
		} else {
			t.Logf("%s: %d KiB", name, kib)
		}
	}
}

// remember runs in the separate process.
func remember(t *testing.T, name, file string) {
	s, err := Open(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := s.Workspace("w")
	if strings.HasPrefix(name, disk) {
		opened, err := OpenDisk(filepath.Join(filepath.Dir(file), disk), DiskOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = opened.Close() }()
		d = opened.Directory()
	}
	do, passed := memories[name].make(d)
	if _, err := s.Workspace("w").Stat(t.Context(), "small"); err != nil {
		t.Fatal(err)
	}
	usagetest.Tell(t, func() {
		if err := do(t.Context()); err != nil {
			t.Error(err)
		}
	})
	runtime.KeepAlive(passed)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
