package npm

import (
	"errors"
	"strings"
	"testing"

	"github.com/stilehost/stile/toolchain"
)

// Each dependency is refused before npm hears of it.
func TestRefusedDependencies(t *testing.T) {
	for _, test := range []struct{ name, spec, want string }{
		{"p", "file:../secrets", "is a file"},
		{"p", "FILE:/etc", "is a file"},
		{"p", "../p", "is a file"},
		{"p", "/etc/p", "is a file"},
		{"p", "~/p", "is a file"},
		{"p", "p.tgz", "is a file"},
		{"p", "link:../p", "is a link"},
		{"p", "workspace:*", "is a link"},
		{"p", "workspace:^1.0.0", "is a link"},
		{"p", "git+ssh://git@example.com/p.git", "is a repository"},
		{"p", "git+https://example.com/p.git#v1", "is a repository"},
		{"p", "git://example.com/p", "is a repository"},
		{"p", "github:user/p", "is a repository"},
		{"p", "user/p", "is a repository"},
		{"p", "user/p#semver:^1", "is a URL"},
		{"p", "git@example.com:p", "is a repository"},
		{"p", "https://example.com/p.tgz", "is a URL"},
		{"p", "http://127.0.0.1/p.tgz", "is a URL"},
		{"p", "gist:11081aaa281", "is a URL"},
		{"p", "npm:other@1.0.0", "another package"},
		{"p", "NPM:other", "another package"},
		{"p", "npm:@scope/other@^1", "another package"},
		{"p", "patch:p@1.0.0#x.patch", "is a URL"},
		{"p", "catalog:", "is a URL"},
		{"p", "portal:../p", "is a URL"},
		{"p", "C:\\p", "is a URL"},
		{"p", "latest", "not a range"},
		{"p", "next", "not a range"},
		{"p", "", "is empty"},
		{"p", " ", "not a range"},
		{"p", "1.2.3\n", "not a range"},
		{"p", "^1.0.0\x00", `\x00`},
		{"p", "^1.0.0 \u202e", `\u202e`},
		{"p", "--registry=http://example.com", "is a URL"},
		{"p", "^1 --x", "not a range"},
		{"p", "1.2.3.4", "not a range"},
		{"p", "1.0.0-a.tgz", "is a file"}, // a version too, but npm would look for the file
		{"p", "1.0.0-a.TAR", "is a file"},
		{"p", "01.2.3", "not a range"},
		{"p", "1 ||", "not a range"},
		{"p", "||", "not a range"},
		{"p", "1.x || file:x", "is a URL"},
		{"p", strings.Repeat("1 ", 200) + "1", "bytes"},
		{"p", "99999999999999999999", "not a range"},

		{"", "1", "not the name"},
		{"../p", "1", "not the name"},
		{".p", "1", "not the name"},
		{"..", "1", "not the name"},
		{"_p", "1", "not the name"},
		{"-g", "1", "not the name"},
		{"~p", "1", "not the name"},
		{"@-a/b", "1", "not the name"},
		{"p/..", "1", "not the name"},
		{"@a/b/c", "1", "not the name"},
		{"@/b", "1", "not the name"},
		{"@../b", "1", "not the name"},
		{"@a/..", "1", "not the name"},
		{"@a", "1", "not the name"},
		{"P", "1", "not the name"},
		{"p q", "1", "not the name"},
		{"p\n", "1", "not the name"},
		{"p\x1b[31m", "1", `\x1b`},
		{"p\u202eq", "1", `\u202e`},
		{"p\u0430", "1", "not the name"},
		{"p@1", "1", "not the name"},
		{"p%2fq", "1", "not the name"},
		{"p\\q", "1", "not the name"},
		{"node_modules", "1", "not the name"},
		{"favicon.ico", "1", "not the name"},
		{"stile", "1", "is the SDK"},
		{strings.Repeat("p", 215), "1", "215 bytes"},
	} {
		_, err := wantedPackages(Request{Dependencies: map[string]string{test.name: test.spec}})
		bad, ok := errors.AsType[*toolchain.BuildError](err)
		if !ok || len(bad.Problems) != 1 {
			t.Errorf("%q %q: got %v", test.name, test.spec, err)
			continue
		}
		p := bad.Problems[0]
		if !strings.Contains(p.Text, test.want) || p.Fix == "" || p.File != ManifestFile || strings.ContainsAny(p.Text, "\n\x00\x1b\u202e") {
			t.Errorf("%q %q: got %+v, want %q", test.name, test.spec, p, test.want)
		}
	}
	if _, err := wantedPackages(Request{Imports: []string{"@a"}}); err == nil || !strings.Contains(err.Error(), "not the name") {
		t.Errorf("an import that is no package: %v", err)
	}
}

func TestAcceptedDependencies(t *testing.T) {
	for _, spec := range []string{
		"1.2.3", "v1.2.3", "=1.2.3", "^1.2.3", "~1.2", "1", "1.x", "1.2.*", "*", "x", ">=1.2.3 <2.0.0", ">= 1.2", "1.2.3 - 2.3.4", "^1 || ^2", "^1||^2",
		"1.2.3-beta.1", "^1.2.3-rc.1+build.5", "<=1", "~1.2.3 || >=3.0.0 <4", "1.0.0 - 2",
	} {
		if text, _ := specProblem("p", spec); text != "" {
			t.Errorf("%q: %s", spec, text)
		}
	}
	for _, name := range []string{"zod", "lodash-es", "@scope/name", "date-fns", "big.js", "a", "0x", "@a-b/c.d_e"} {
		if text := nameProblem(name); text != "" {
			t.Errorf("%q %s", name, text)
		}
	}
}

func TestWantedPackages(t *testing.T) {
	wanted, err := wantedPackages(Request{
		Dependencies: map[string]string{"zod": "^4.0.0", "events": "3.2.0"},
		Imports:      []string{"zod/v4", "@scope/name/deep/path", "lodash-es", "lodash-es/debounce", "node:path", "events", "node:fs", "fs/promises"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"zod": "^4.0.0", "events": "3.2.0", "@scope/name": "*", "lodash-es": "*"}
	for name, spec := range want {
		if wanted[name] != spec {
			t.Errorf("%s: got %q, want %q", name, wanted[name], spec)
		}
	}
	if len(wanted) != len(want) {
		t.Errorf("got %v", wanted)
	}
}

// What is accepted has none of the signs by which npm tells files, URLs, repositories and aliases.
func FuzzSpec(f *testing.F) {
	for _, s := range []string{"^1.2.3", "1 - 2", "npm:a@1", "file:x", "a/b", "~/x", "1.x||*", ">=1 <2"} {
		f.Add("p", s)
		f.Add("@s/"+s, "1")
	}
	f.Fuzz(func(t *testing.T, name, spec string) {
		if text, _ := specProblem(name, spec); text != "" {
			if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
				t.Fatalf("%q: %q %q", text, name, spec)
			}
			return
		}
		if strings.ContainsAny(spec, ":/@#\\\n\x00") || strings.HasPrefix(spec, ".") || strings.ContainsAny(name, "\\\n\x00%:") || strings.Contains(name, "..") && strings.Contains(name, "/..") {
			t.Fatalf("accepted %q %q", name, spec)
		}
	})
}
