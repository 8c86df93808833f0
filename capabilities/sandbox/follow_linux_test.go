package sandbox_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/capabilities/internal/trees"
	"github.com/stilehost/stile/capabilities/sandbox"
	"github.com/stilehost/stile/capabilities/workspace"
)

// content is what a workspace has, in the words of inside.
func content(t *testing.T, d *workspace.Directory) string {
	t.Helper()
	var lines, files []string
	if _, err := d.Survey(t.Context(), "", func(e trees.Entry) error {
		switch e.Kind {
		case trees.File:
			files = append(files, e.Path)
			lines = append(lines, fmt.Sprintf("%s f %o", e.Path, e.Mode))
		case trees.Directory:
			lines = append(lines, fmt.Sprintf("%s d %o", e.Path, e.Mode))
		default:
			lines = append(lines, e.Path+" l "+e.Target)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := d.Load(t.Context(), files, func(path string, _ int64, r io.Reader) error {
		text, err := io.ReadAll(r)
		lines = append(lines, path+": "+strings.TrimSpace(string(text)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// inside is what the sandbox has.
func inside(t *testing.T, s *sandbox.Sandbox) string {
	t.Helper()
	lines := strings.Split(must(t, s, `find . -mindepth 1 \( -type f -printf '%P f %m\n' \) -o \( -type d -printf '%P d %m\n' \) -o \( -type l -printf '%P l %l\n' \)
find . -type f -printf '%P\n' | while read -r f; do printf '%s: ' "$f"; cat "$f"; echo; done | sed '/^$/d'`), "\n")
	slices.Sort(lines)
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// TestFollowed has programs change a tree at random, and compares what pulls made of the workspace with the tree.
func TestFollowed(t *testing.T) {
	names := []string{"a", "b", "d", "d/a", "d/b", "e", "d/e", "e/a", "d/e/a", "d/e/b"}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			s, d := open(t, home(t), sandbox.Rights{}), store(t)
			push(t, s, d, "")
			name := func() string { return names[r.IntN(len(names))] }
			followed := 0
			var done strings.Builder
			for round := range 40 {
				var script strings.Builder
				for range 1 + r.IntN(5) {
					ops := []string{
						"printf TEXT > A", "printf x >> A", "rm -rf A", "mkdir -p A", "mv -T A B", "mv A B", "chmod MODE A", "rm -f A; ln -s a A", "cp -r A B",
						"touch A", "printf y > .t && mv -T .t A", "rmdir A", "ln A B; rm -f B",
					}
					op := ops[r.IntN(len(ops))]
					script.WriteString(strings.NewReplacer("MODE", fmt.Sprintf("7%d0", r.IntN(8)), "TEXT", fmt.Sprint(r.IntN(1000)), "A", name(), "B", name()).Replace(op) + "\n")
				}
				run(t, s, "("+script.String()+") 2>/dev/null")
				done.WriteString(script.String() + "-- pull\n")
				if s.Follows() {
					followed++
				}
				pull(t, s, d, "")
				if got, want := content(t, d), inside(t, s); got != want {
					t.Fatalf("round %d: the workspace has\n%s\nand the sandbox\n%s\nafter\n%s", round, got, want, done.String())
				}
				if r.IntN(4) > 0 {
					continue
				}
				at := name()
				if err := d.Write(t.Context(), at, fmt.Sprint("workspace ", round)); err != nil { // there is a folder
					continue
				}
				fmt.Fprintf(&done, "-- push %s\n", at)
				push(t, s, d, "")
			}
			if followed < 20 {
				t.Errorf("only %d pulls knew where to look", followed)
			}
		})
	}
}

// TestFollowedLeavesOut has a tree with what no workspace takes. Each pull says so, also when it looks only where something changed.
func TestFollowedLeavesOut(t *testing.T) {
	s, d := open(t, home(t), sandbox.Rights{Limits: sandbox.Limits{Disk: 64 << 20}}), store(t)
	must(t, s, `mkfifo pipe; ln -s /etc/passwd absolute; echo x > "$(printf 'a\tb')"; echo y > file; truncate -s 100G holes; mkdir dir`)
	want := "?a\tb ?absolute ?holes ?pipe"
	if got := summary(pull(t, s, d, "")); got != "+dir +file "+want {
		t.Errorf("the first pull: %s", got)
	}
	for range 3 {
		if got := summary(pull(t, s, d, "")); got != want || !s.Follows() {
			t.Errorf("a pull that knows where to look, %v: %s", s.Follows(), got)
		}
	}
	must(t, s, "rm pipe; echo now > pipe; echo z >> file")
	if got := summary(pull(t, s, d, "")); got != "+pipe ?a\tb ?absolute ?holes ~file" {
		t.Errorf("got %s", got)
	}
	// Files with holes that are too large together, one more in each copy.
	must(t, s, "mkdir big; truncate -s 30M big/1")
	if got := summary(pull(t, s, d, "big")); got != "+1" {
		t.Errorf("got %s", got)
	}
	must(t, s, "truncate -s 30M big/2")
	if got := summary(pull(t, s, d, "big")); got != "+2" {
		t.Errorf("got %s", got)
	}
	must(t, s, "truncate -s 30M big/3")
	c := pull(t, s, d, "big") // the order of names in a folder is the disk's
	if len(c.Skipped) != 1 {
		t.Fatalf("got %s", summary(c))
	}
	left := c.Skipped[0].Path
	must(t, s, "echo 4 > big/4")
	if got := summary(pull(t, s, d, "big")); got != "+4 ?"+left {
		t.Errorf("got %s, want +4 ?%s", got, left)
	}
	must(t, s, "cd big; mv "+left+" kept; rm 1 2 3; mv kept "+left)
	if got := summary(pull(t, s, d, "big")); strings.Contains(got, "?") {
		t.Errorf("got %s", got)
	}
}
