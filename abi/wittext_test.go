package abi_test

import (
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/wit"
)

func TestWIT(t *testing.T) {
	r, err := abi.Parse(`package a:b@1.0.0;
		/// Doc.
		///
		///   More.
		interface %type {
			use c:d/i@2.0.0-rc.1.{error as failure, thing, %list};
			use c:d/i@1.0.0.{error as old-failure};
			use other.{error as other-error};
			f: func(%own: list<thing>);
			/// A resource.
			resource first;
			type alias = option<tuple<u8, borrow<thing>>>;
			resource r {
				/// A method.
				m: func(a: alias) -> result<_, other-error>;
				constructor(a: %list);
				s: static func() -> result;
			}
			g: func() -> result<old-failure, failure>;
			record error {
				/// A field.
				%from: u8,
			}
		}
		interface other { enum error { one } }`,
		`package c:d@2.0.0-rc.1; interface i {
			resource thing;
			variant error { a, b(string) }
			flags %list { a }
		}`,
		"package c:d@1.0.0; interface i { enum error { one } }")
	if err != nil {
		t.Fatal(err)
	}
	const want = `package a:b@1.0.0;

/// Doc.
///
///   More.
interface %type {
  use c:d/i@2.0.0-rc.1.{thing, %list, error as used-a};
  use other.{error as other-error};
  use c:d/i@1.0.0.{error as i-error};
  record error {
    /// A field.
    %from: u8,
  }
  /// A resource.
  resource first;
  f: func(%own: list<thing>);
  resource r {
    /// A method.
    m: func(a: option<tuple<u8, borrow<thing>>>) -> result<_, other-error>;
    constructor(a: %list);
    s: static func() -> result;
  }
  g: func() -> result<i-error, used-a>;
}
`
	if got := r.Interface("a:b/type@1.0.0").WIT(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWITParsesBack(t *testing.T) {
	cases := map[string][]string{"contract": contract(t)}
	files, err := filepath.Glob("testdata/wit/*.wit")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		cases[filepath.Base(file)] = []string{read(t, file)}
	}
	for name, texts := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := abi.Parse(texts...)
			if err != nil {
				t.Fatal(err)
			}
			checkParsesBack(t, r)
		})
	}
	t.Run("random", rapid.MakeCheck(func(t *rapid.T) {
		text := randomWIT().Draw(t, "wit")
		r, err := abi.Parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "more than 10000") {
				return // a random type may well be that large
			}
			t.Fatalf("%v in\n%s", err, text)
		}
		checkParsesBack(t, r)
	}))
}

// checkParsesBack prints all interfaces, and wants the same ones when the prints are parsed.
func checkParsesBack(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, r *abi.Resolve,
) {
	t.Helper()
	var prints []string
	for _, i := range r.Interfaces() {
		prints = append(prints, i.WIT())
		if len(prints[len(prints)-1]) > 1<<20 {
			return // an alias of a long type, used often: too long to parse
		}
	}
	again, err := abi.Parse(prints...)
	if err != nil {
		t.Fatalf("%v in\n%s", err, strings.Join(prints, "\n"))
	}
	for n, want := range r.Interfaces() {
		got := again.Interface(want.Name)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("another interface comes back from\n%s:\n%s", prints[n], got.WIT())
		}
		if got.WIT() != prints[n] {
			t.Fatalf("printed\n%s\nand then\n%s", prints[n], got.WIT())
		}
	}
}

// checkOwn prints an interface that a world declares, and wants the same one when the print is parsed in a package of its own.
func checkOwn(t *testing.T, r *abi.Resolve, i *abi.Interface) {
	text := i.WIT()
	if strings.Contains(i.Name, ":") || len(text) > 1<<20 {
		return
	}
	again, err := abi.ParseFolder(asFolder(append([]string{"package fuzz:own-package;" + text}, byPackage(r)...)))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	got := again.Interface("fuzz:own-package/" + i.Name)
	if after := got.WIT(); strings.TrimPrefix(after, "package fuzz:own-package;\n\n") != text {
		t.Fatalf("printed\n%s\nand then\n%s", text, after)
	}
}

// byPackage prints the interfaces, with those of each package in one text.
func byPackage(r *abi.Resolve) []string {
	packages := map[string]string{}
	for _, i := range r.Interfaces() {
		line, rest, _ := strings.Cut(i.WIT(), "\n")
		packages[line] += rest
	}
	var texts []string
	for _, line := range slices.Sorted(maps.Keys(packages)) {
		if text := line + packages[line]; len(text) <= 1<<20 {
			texts = append(texts, text)
		}
	}
	return texts
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/wit/*.wit")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		f.Add(read(f, file))
	}
	f.Add(wit.Capability())
	f.Add(in("type t = " + nested(100) + ";"))
	f.Add(in("@since(version = 1.0.0) use c:d/i@1.0.0-a.{b as c}; f: func(a: own<r>) -> result<_, list<u8>>; resource r { constructor(); s: static func(); }"))
	f.Add("package a:b { world w { include v with { a as b } import c: func(); export d; } } /// \n/** /* */ */")
	f.Add(worldText)
	f.Add("package a:b@1.0.1-1a+1a; use i as j; world w { include v with { r as s, i as k } } world v { resource r { m: func(); } import i: interface { use j.{t}; } enum e { a } import f: func() -> e; } interface i { @unstable(feature = x) @deprecated(version = 1.0.0) type u = u8; @since(version = 1.0.0) type t = u8; }")
	f.Add("interface i { use c:d/i.{t}; } package c:d { interface i { type t = u8; } } package e:f { world w { import g: interface { f: func(); } export g: interface {} } }")
	contract := contract(f)
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func() (*abi.Resolve, error){
			func() (*abi.Resolve, error) { return abi.Parse(text) },
			func() (*abi.Resolve, error) { return abi.ParseCapability(append([]string{text}, contract...)...) },
		} {
			r, err := parse()
			if err != nil {
				if _, ok := errors.AsType[*abi.SyntaxError](err); !ok {
					t.Fatalf("%T is not a *SyntaxError", err)
				}
				return
			}
			for _, i := range r.Interfaces() {
				i.Handle()
				for _, f := range i.Funcs {
					f.Core(true)
				}
			}
			for _, w := range r.Worlds() {
				for _, f := range slices.Concat(w.ImportFuncs, w.ExportFuncs) {
					f.Core(true)
				}
				for _, i := range slices.Concat(w.Imports, w.Exports) {
					checkOwn(t, r, i)
				}
			}
			checkParsesBack(t, r)
		}
	})
}
