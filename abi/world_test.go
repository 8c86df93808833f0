package abi_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/treetest"
)

const worldText = `package a:b@1.0.0;
	interface types { record point { x: u8 } }
	world base {
		use types.{point};
		/// A log.
		resource log {
			constructor(name: string);
			write: func(at: point);
			open: static func() -> list<log>;
		}
		variant outcome { done, failed(log) }
		type alias = option<outcome>;
		import logger: interface {
			use types.{point as p};
			resource line;
			record entry { at: p, of: line }
			log: func(e: entry) -> result<line>;
		}
		import last: func(of: borrow<log>) -> alias;
		export run: func(l: log) -> outcome;
		export logger: interface { log: func(); }
	}
	world plain { include base; }
	world renamed { include base with { log as journal, logger as recorder, run as start, point as position } }`

// A world has the types that it declares. A world that includes it shares them, or has copies under other names.
func TestWorldDeclares(t *testing.T) {
	r, err := abi.Parse(worldText)
	if err != nil {
		t.Fatal(err)
	}
	if got := interfaceNames(r.Interfaces()); !slices.Equal(got, []string{"a:b/types@1.0.0"}) {
		t.Errorf("interfaces %q", got)
	}
	base := r.World("a:b/base@1.0.0")
	for _, test := range []struct{ world, log, logger, run string }{
		{"base", "log", "logger", "run"},
		{"plain", "log", "logger", "run"},
		{"renamed", "journal", "recorder", "start"},
	} {
		w := r.World("a:b/" + test.world + "@1.0.0")
		if got := interfaceNames(w.Imports); !slices.Equal(got, []string{"a:b/types@1.0.0", test.logger}) {
			t.Errorf("%s imports %q", test.world, got)
		}
		if got := interfaceNames(w.Exports); !slices.Equal(got, []string{test.logger}) {
			t.Errorf("%s exports %q", test.world, got)
		}
		log, outcome := w.Resources[0], w.Types[0]
		if log.Name != test.log || log.Doc != "A log." || log.Interface != nil {
			t.Errorf("%s: resource %+v", test.world, log)
		}
		if outcome.Name != "outcome" || outcome.Interface != nil || outcome.Cases[1].Type.Resource != log {
			t.Errorf("%s: type %+v", test.world, outcome)
		}
		names := []string{"last", "[constructor]" + test.log, "[method]" + test.log + ".write", "[static]" + test.log + ".open"}
		if len(w.ImportFuncs) != len(names) {
			t.Fatalf("%s: %d functions", test.world, len(w.ImportFuncs))
		}
		for i, f := range w.ImportFuncs {
			if f.Name != names[i] || f.Interface != nil || (f.Resource == log) != (i > 0) {
				t.Errorf("%s: function %+v, want %s", test.world, f, names[i])
			}
		}
		last, write, open := w.ImportFuncs[0], w.ImportFuncs[2], w.ImportFuncs[3]
		if last.Params[0].Type.Resource != log || last.Result.Elem != outcome || write.Params[0].Type.Resource != log ||
			open.Result.Elem.Resource != log || write.Params[1].Type != r.Interface("a:b/types@1.0.0").Types[0] {
			t.Errorf("%s: functions have other types than the world", test.world)
		}
		run := w.ExportFuncs[0]
		if run.Name != test.run || run.Params[0].Type.Resource != log || run.Result != outcome {
			t.Errorf("%s: export %+v", test.world, run)
		}
		logger := w.Imports[1]
		entry, f := logger.Types[0], logger.Funcs[0]
		if entry.Interface != logger || logger.Resources[0].Interface != logger || f.Interface != logger ||
			f.Params[0].Type != entry || f.Result.Ok.Resource != logger.Resources[0] || entry.Fields[1].Type.Resource != logger.Resources[0] ||
			entry.Fields[0].Type != write.Params[1].Type {
			t.Errorf("%s: the interface %s has types of another one", test.world, logger.Name)
		}
		if shared := w.Types[0] == base.Types[0]; shared != (test.world != "renamed") {
			t.Errorf("%s: types shared %t", test.world, shared)
		}
	}
}

// The texts of a capability may be several files of a package if one has the `package` line. Stile's own packages do not count.
func TestTextsWithoutPackageLine(t *testing.T) {
	texts := append(contract(t), "interface j { use i.{t}; resource r { f: func(a: t); } }", "package acme:crm@1.0.0; interface i { type t = u8; }")
	r, err := abi.ParseCapability(texts...)
	if err != nil {
		t.Fatal(err)
	}
	if j := r.Interface("acme:crm/j@1.0.0"); j == nil || len(j.Funcs) != 3 {
		t.Errorf("the interface is %+v", j)
	}
	for _, test := range []struct {
		name, message string
		texts         []string
	}{
		{"two packages", "the other texts have those of several packages", append(texts, "package acme:other;")},
		{"none but Stile's", "no `package` line in this package", append(contract(t), "interface i {}")},
		{"an empty text", "no `package` line in this package", append(contract(t), "// nothing")},
	} {
		if _, err := abi.ParseCapability(test.texts...); err == nil || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: %v, want %q", test.name, err, test.message)
		}
	}
}

func TestParseFolder(t *testing.T) {
	folder := func(files ...string) fstest.MapFS {
		f := fstest.MapFS{}
		for i := 0; i < len(files); i += 2 {
			f[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
		}
		return f
	}
	r, err := abi.ParseFolder(folder(
		"b.wit", "package a:b;", "a.wit", "interface i { use c:d/i.{t}; use e:f/i.{t as u}; @unstable(feature = x) f: func(); @unstable(feature = y) g: func(); }",
		"README.md", "#", "sub/x.wit", "not WIT", "deps/README", "#",
		"deps/c.wit", "package c:d; interface i { type t = u8; }",
		"deps/e/1.wit", "interface i { type t = u8; }", "deps/e/2.wit", "package e:f;", "deps/e/deps/x.wit", "not WIT",
	), "x")
	if err != nil {
		t.Fatal(err)
	}
	if i := r.Interface("a:b/i"); len(i.Funcs) != 1 || i.Funcs[0].Name != "f" {
		t.Errorf("functions %v, want f alone", i.Funcs)
	}
	if _, err := abi.ParseCapability(append(contract(t), r.WIT()...)...); err != nil {
		t.Errorf("the texts of a folder: %v", err)
	}
	many := fstest.MapFS{"a.wit": &fstest.MapFile{Data: []byte("package a:b;")}}
	for _, word := range wordList(1001) {
		many["deps/"+word+".wit"] = &fstest.MapFile{Data: []byte("package a:" + word + ";")}
	}
	for _, test := range []struct {
		name   string
		folder fstest.MapFS
		want   string
	}{
		{"no text", folder("deps/c.wit", "package c:d;"), ".: there is no .wit file in this folder"},
		{"no text of another package", folder("a.wit", "package a:b;", "deps/c/README", "#"), "deps/c: there is no .wit file in this folder"},
		{"two packages in one folder", folder("a.wit", "package a:b;", "b.wit", "// c\n  package c:d;"), "b.wit, line 2, column 3: the package is c:d here and a:b in another file"},
		{"two versions in one folder", folder("a.wit", "package a:b@1.0.0;", "deps/x/a.wit", "package c:d@1.0.0;", "deps/x/b.wit", "package c:d@1.0.1;"), "deps/x/b.wit, line 1, column 1: the package is c:d@1.0.1 here"},
		{"one package in two folders", folder("a.wit", "package a:b;", "deps/c.wit", "package c:d;", "deps/e/c.wit", "package c:d;"), "deps/e/c.wit, line 1, column 1: the package c:d is defined twice"},
		{"the package itself among those it needs", folder("a.wit", "package a:b;", "deps/a.wit", "package a:b;"), "deps/a.wit, line 1, column 1: the package a:b is defined twice"},
		{"a name in one package only", folder("a.wit", "package a:b; interface i { use j.{t}; }", "deps/c.wit", "package c:d; interface j { type t = u8; }"), "a.wit, line 1, column 32: there is no interface or world `j`"},
		{"no package line", folder("a.wit", "package a:b;", "deps/c/a.wit", "interface i {}"), "deps/c/a.wit, line 1, column 1: there is no `package` line"},
		{"a package in WebAssembly", folder("a.wit", "package a:b;", "deps/c.wasm", "\x00asm"), "deps/c.wasm: a package in WebAssembly form is not supported"},
		{"a syntax error", folder("a.wit", "package a:b;", "deps/c/c.wit", "package c:d;\n?"), "deps/c/c.wit, line 2, column 1: unexpected character '?'"},
		{"a large file", folder("a.wit", strings.Repeat(" ", 2<<20)), "a.wit, line 1, column 1: the text is too long; at most 1048576"},
		{"a pipe", fstest.MapFS{"a.wit": &fstest.MapFile{Mode: fs.ModeNamedPipe}}, "a.wit: this is not a file"},
		{"many files", many, "there are more than 1000 .wit files"},
	} {
		if _, err := abi.ParseFolder(test.folder); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	for _, in := range []string{".", "deps", "deps/c"} {
		files := folder("a.wit", "package a:b;", "deps/c/a.wit", "package c:d;")
		if _, err := abi.ParseFolder(treetest.Endless(files, in)); err == nil || !strings.Contains(err.Error(), in+": the folder holds more than 10000 files and folders") {
			t.Errorf("%s without end: %v", in, err)
		}
	}
	if _, err := abi.ParseFolder(missing{}); err == nil || !strings.Contains(err.Error(), "read a WIT package") {
		t.Errorf("a folder that cannot be read: %v", err)
	}
}

// missing is a folder that is not there.
type missing struct{}

func (missing) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
