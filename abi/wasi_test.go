package abi_test

import (
	"io/fs"
	"maps"
	"path"
	"regexp"
	"strings"
	"testing"

	reference "go.bytecodealliance.org/wit"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/suite"
)

// TestWASI reads the packages of WASI from two crates: 0.2.2 as folders of files, some without the `package` line, and 0.2.12 with one
// file for each package.
func TestWASI(t *testing.T) {
	for _, test := range []struct {
		crate, version string
		// How much each package has without any unstable feature.
		interfaces, worlds, funcs map[string]int
	}{
		{
			crate: "wasi", version: "0.2.2",
			interfaces: map[string]int{"cli": 11, "clocks": 2, "filesystem": 2, "http": 3, "io": 3, "random": 3, "sockets": 7},
			worlds:     map[string]int{"cli": 2, "clocks": 1, "filesystem": 1, "http": 2, "io": 1, "random": 1, "sockets": 1},
			funcs:      map[string]int{"cli": 11, "clocks": 6, "filesystem": 30, "http": 53, "io": 19, "random": 5, "sockets": 52},
		},
		{
			crate: "wasip2", version: "0.2.12",
			interfaces: map[string]int{"cli": 11, "clocks": 2, "filesystem": 2, "http": 3, "io": 3, "random": 3, "sockets": 7},
			worlds:     map[string]int{"cli": 2, "clocks": 1, "filesystem": 1, "http": 2, "io": 1, "random": 1, "sockets": 1},
			funcs:      map[string]int{"cli": 12, "clocks": 6, "filesystem": 30, "http": 53, "io": 19, "random": 5, "sockets": 52},
		},
	} {
		t.Run(test.crate, func(t *testing.T) {
			t.Parallel()
			folder, err := fs.Sub(suite.Crate(t, test.crate), "wit")
			if err != nil {
				t.Fatal(err)
			}
			stable, err := abi.ParseFolder(folder)
			if err != nil {
				t.Fatal(err)
			}
			interfaces, worlds, funcs := map[string]int{}, map[string]int{}, map[string]int{}
			for _, i := range stable.Interfaces() {
				pkg := wasiPackage(t, i.Name, test.version)
				interfaces[pkg]++
				funcs[pkg] += len(i.Funcs)
			}
			for _, w := range stable.Worlds() {
				if !strings.HasPrefix(w.Name, "rust:wasi/") {
					worlds[wasiPackage(t, w.Name, test.version)]++
				}
			}
			if !maps.Equal(interfaces, test.interfaces) || !maps.Equal(worlds, test.worlds) || !maps.Equal(funcs, test.funcs) {
				t.Errorf("%v interfaces, %v worlds, %v functions, want %v, %v, %v", interfaces, worlds, funcs, test.interfaces, test.worlds, test.funcs)
			}
			timezone := "wasi:clocks/timezone@" + test.version
			if stable.Interface(timezone) != nil {
				t.Errorf("%s is there, although it is unstable", timezone)
			}
			checkParsesBack(t, stable)

			text := oneFile(t, folder)
			want, err := reference.DecodeWIT(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			all, err := abi.ParseFolder(folder, unstable([]string{text})...)
			if err != nil {
				t.Fatal(err)
			}
			if all.Interface(timezone) == nil {
				t.Errorf("%s is not there, although its feature is enabled", timezone)
			}
			compareInterfaces(t, all, want)
			compareWorlds(t, all, want)
			if _, err := abi.Parse(text); err != nil {
				t.Error(err)
			}
		})
	}
}

// wasiPackage cuts "io" out of "wasi:io/poll@0.2.2".
func wasiPackage(t *testing.T, name, version string) string {
	rest, ok := strings.CutPrefix(name, "wasi:")
	pkg, rest, found := strings.Cut(rest, "/")
	if !ok || !found || !strings.HasSuffix(rest, "@"+version) {
		t.Fatalf("%s is not of wasi:...@%s", name, version)
	}
	return pkg
}

var packageLine = regexp.MustCompile(`(?m)^package ([^;]+);`)

// oneFile makes one text of a folder: wasm-tools reads one from its standard input.
func oneFile(t *testing.T, folder fs.FS) string {
	packages := map[string]string{}
	names := map[string]string{}
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".wit" {
			return err
		}
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			return err
		}
		place := path.Dir(name)
		if place == "deps" {
			place = name
		}
		if line := packageLine.FindSubmatch(text); line != nil {
			names[place] = string(line[1])
		}
		packages[place] += packageLine.ReplaceAllString(string(text), "") + "\n"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	main := "package " + names["."] + ";\n" + packages["."]
	delete(packages, ".")
	var b strings.Builder
	b.WriteString(main)
	for place, text := range packages {
		b.WriteString("package " + names[place] + " {\n" + text + "}\n")
	}
	return b.String()
}
