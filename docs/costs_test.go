package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/wit"
)

var (
	quoted    = regexp.MustCompile("`([^`]+)`")
	namedTest = regexp.MustCompile("`(?:Test|Fuzz)\\w+")
)

// TestEveryOperationHasACost holds the table of costs in SECURITY.md to the WIT: each function has one row, no row is of a
// function that is not there, and each row says time, memory, lock and bound, and names a test.
func TestEveryOperationHasACost(t *testing.T) {
	text, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, i := range known.Interfaces() {
		for _, f := range i.Funcs {
			want = append(want, operationName(f))
		}
	}
	_, table, found := strings.Cut(string(text), "\n## What each operation costs the host\n")
	if !found {
		t.Fatal("SECURITY.md has no section on what each operation costs")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	table, _, _ = strings.Cut(table, "\nFunctions of WASI ") // these have another table
	var have []string
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 6 || slices.ContainsFunc(cells, func(s string) bool { return strings.TrimSpace(s) == "" }) {
			t.Errorf("not six cells with something in each: %s", line)
			continue
		}
		if !namedTest.MatchString(cells[5]) {
			t.Errorf("no test is named: %s", line)
		}
		for _, name := range quoted.FindAllStringSubmatch(cells[0], -1) {
			if slices.Contains(have, name[1]) {
				t.Errorf("%s is there twice", name[1])
			}
			have = append(have, name[1])
		}
	}
	for _, name := range want {
		if !slices.Contains(have, name) {
			t.Errorf("%s has no row in the table of SECURITY.md, \"What each operation costs the host\"", name)
		}
	}
	for _, name := range have {
		if !slices.Contains(want, name) {
			t.Errorf("SECURITY.md has a row for %s, and there is no such function", name)
		}
	}
}

// operationName is "http.client.start" for a function of stile:capability, and "extension/tools.call" for what is exported.
func operationName(f *abi.Func) string {
	name, _, _ := strings.Cut(f.Interface.Name, "@")
	name = strings.TrimPrefix(strings.TrimPrefix(name, "stile:capability/"), "stile:")
	return name + "." + strings.TrimPrefix(f.Name, "[method]")
}

// TestKindsAreListed checks that the tables of kinds have each built-in kind.
func TestKindsAreListed(t *testing.T) {
	list := func(file, heading string) string {
		_, section, found := strings.Cut(read(t, file), "\n## "+heading+"\n")
		if !found {
			t.Fatalf("%s has no section %q", file, heading)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		var cells strings.Builder // the first of each row
		for line := range strings.Lines(section) {
			if first, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && strings.HasPrefix(line, "| ") {
				cells.WriteString(first + "\n")
			}
		}
		return cells.String()
	}
	kinds, manifest := list("capabilities.md", "Kinds"), list("manifest.md", "Bindings")
	for _, k := range capabilities.Builtin.All() {
		if !strings.Contains(kinds, "`"+k.Name+"`") {
			t.Errorf("the table of kinds in capabilities.md has no row for %s", k.Name)
		}
		if k.Parse != nil && !strings.Contains(manifest, "`"+k.Name+"`") {
			t.Errorf("the table of kinds in manifest.md has no row for %s", k.Name)
		}
	}
}
