package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is a module in a repository. Its package "slow" has a long test and imports "used".
func module(t *testing.T) (root, file string) {
	t.Helper()
	root = t.TempDir()
	write(t, root, map[string]string{
		"go.mod":                    "module example.test/m\n\ngo 1.26\n",
		"slow/slow.go":              "package slow\n\nimport _ \"example.test/m/used\"\n",
		"slow/slow_long_test.go":    "//go:build long\n\npackage slow\n\nimport \"testing\"\n\nfunc TestLongWork(t *testing.T) { t.Log(\"works\") }\n",
		"slow/testdata/a/input.txt": "1",
		"used/used.go":              "package used\n\nimport _ \"embed\"\n\n//go:embed text/a.txt\nvar Text string\n",
		"used/text/a.txt":           "a",
		"other/other.go":            "package other\n",
		"README.md":                 "a",
	})
	git(t, root, "init", "-q")
	commitAll(t, root)
	return root, filepath.Join(t.TempDir(), "long.json")
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func git(t *testing.T, root string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.test", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

func commitAll(t *testing.T, root string) {
	t.Helper()
	git(t, root, "add", ".")
	git(t, root, "commit", "-q", "-m", "a")
}

func TestReport(t *testing.T) {
	root, file := module(t)
	var said bytes.Buffer
	if err := compare(t.Context(), &said, root, file); err == nil || !strings.Contains(err.Error(), "there is no report") {
		t.Errorf("without a report: %v", err)
	}
	if err := run(t.Context(), &said, root, file); err != nil || !strings.Contains(said.String(), "works") {
		t.Fatalf("%v: %s", err, &said)
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		stale string
		fails string
	}{
		{"nothing", nil, "", ""},
		{"what is not covered", map[string]string{"other/other.go": "package other // changed\n", "README.md": "b", "used/text/b.txt": "b"}, "", ""},
		{"the package", map[string]string{"slow/slow.go": "package slow\n\nimport _ \"example.test/m/used\" // changed\n"}, "slow", ""},
		{"its data", map[string]string{"slow/testdata/a/input.txt": "2"}, "slow", ""},
		{"a new file", map[string]string{"slow/notes.txt": "a"}, "slow", ""},
		{"a package that it imports", map[string]string{"used/more.go": "package used\n"}, "used", ""},
		{"what that embeds", map[string]string{"used/text/a.txt": "b"}, "used", ""},
		{"another package that it imports", map[string]string{"slow/more.go": "package slow\n\nimport _ \"example.test/m/other\"\n"}, "other, slow", ""},
		{"versions", map[string]string{"go.mod": "module example.test/m\n\ngo 1.26.0\n"}, "go.mod", ""},
		{"another package with long tests", map[string]string{"other/a_long_test.go": "//go:build long\n\npackage other\n"}, "", "does not cover example.test/m/other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			write(t, root, c.files)
			defer git(t, root, "clean", "-q", "-f", "-d")
			defer git(t, root, "checkout", "-q", "--", ".")
			var said bytes.Buffer
			err := compare(t.Context(), &said, root, file)
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%v, want %q", err, c.fails)
			}
			_, stale, _ := strings.Cut(strings.TrimSpace(said.String()), "changed: ")
			if stale != c.stale {
				t.Errorf("%q are stale, want %q", stale, c.stale)
			}
		})
	}
	write(t, root, map[string]string{"other/a_long_test.go": "//go:build long\n\npackage other\n\nimport \"testing\"\n\nfunc TestLongOther(*testing.T) {}\n"})
	commitAll(t, root)
	before, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), &said, root, file, "./other"); err != nil {
		t.Fatal(err)
	}
	after, err := read(file)
	if err != nil || len(after.Packages) != 2 || after.Packages["example.test/m/slow"].Commit != before.Packages["example.test/m/slow"].Commit ||
		after.Packages["example.test/m/other"].Commit == before.Packages["example.test/m/slow"].Commit {
		t.Errorf("one package of two: %+v, %v", after, err)
	}
	if err := run(t.Context(), &said, root, file, "./used"); err == nil {
		t.Error("a package without long tests was tested")
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := compare(t.Context(), &said, root, file); err == nil {
		t.Error("a report that cannot be read is none")
	}
}

// There is no report of tests that failed, or of code that is not committed.
func TestNoReport(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		commit bool
		want   string
	}{
		"a test that fails":                  {map[string]string{"slow/slow_long_test.go": "//go:build long\n\npackage slow\n\nimport \"testing\"\n\nfunc TestLongWork(t *testing.T) { t.Error(\"broken\") }\n"}, true, "did not pass"},
		"code that does not build":           {map[string]string{"slow/slow.go": "package slow\n\nvar a int = \"\"\n"}, true, "did not pass"},
		"no test":                            {map[string]string{"slow/slow_long_test.go": "//go:build long\n\npackage slow\n"}, true, "no test that is named TestLong"},
		"a test that changes what it covers": {map[string]string{"slow/slow_long_test.go": "//go:build long\n\npackage slow\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestLongWork(t *testing.T) { os.WriteFile(\"more.go\", []byte(\"package slow\"), 0o600) }\n"}, true, "changed during the run"},
		"a change":                           {map[string]string{"used/used.go": "package used // changed\n"}, false, "is not committed"},
		"a new file":                         {map[string]string{"used/more.go": "package used\n"}, false, "is not committed"},
	} {
		t.Run(name, func(t *testing.T) {
			root, file := module(t)
			write(t, root, c.files)
			if c.commit {
				commitAll(t, root)
			}
			var said bytes.Buffer
			if err := run(t.Context(), &said, root, file); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("there is a report")
			}
		})
	}
}

func TestDifference(t *testing.T) {
	was := map[string]string{"a": "1", "b": "2", "c": "3"}
	now := maps.Clone(was)
	if got := difference(was, now); len(got) != 0 {
		t.Errorf("%q", got)
	}
	now["b"], now["d"] = "4", "5"
	delete(now, "c")
	if got := difference(was, now); !slices.Equal(got, []string{"b", "c", "d"}) {
		t.Errorf("%q", got)
	}
}
