package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/internal/captest"
	"github.com/stilehost/stile/capabilities/internal/trees"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/wit"
)

// mutators has one call of each method that changes the directory, with the operation that its denial names, whatever
// directory the handle is on.
var mutators = map[string]struct {
	call      func(context.Context, *Directory) error
	operation string
}{
	"Write":       {func(ctx context.Context, d *Directory) error { return d.Write(ctx, "a.md", "x") }, "write /a.md"},
	"WriteBytes":  {func(ctx context.Context, d *Directory) error { return d.WriteBytes(ctx, "/a.md", nil) }, "write /a.md"},
	"WriteBlob":   {func(ctx context.Context, d *Directory) error { return d.WriteBlob(ctx, "b/../a.md", blob.New("", nil)) }, "write /a.md"},
	"Replace":     {func(ctx context.Context, d *Directory) error { _, err := d.Replace(ctx, "a.md", "x", nil); return err }, "replace /a.md"},
	"Append":      {func(ctx context.Context, d *Directory) error { return d.Append(ctx, "a.md", "x") }, "append /a.md"},
	"AppendBytes": {func(ctx context.Context, d *Directory) error { return d.AppendBytes(ctx, "a.md", nil) }, "append /a.md"},
	"Edit":        {func(ctx context.Context, d *Directory) error { return d.Edit(ctx, "a.md", nil) }, "edit /a.md"},
	"MakeDirectory": {
		func(ctx context.Context, d *Directory) error { return d.MakeDirectory(ctx, "x") }, "make-directory /x",
	},
	"Move":     {func(ctx context.Context, d *Directory) error { return d.Move(ctx, "a.md", "b") }, "move /a.md to /b"},
	"Copy":     {func(ctx context.Context, d *Directory) error { return d.Copy(ctx, "a.md", "b") }, "copy /a.md to /b"},
	"MakeLink": {func(ctx context.Context, d *Directory) error { return d.MakeLink(ctx, "x", "a.md") }, "make-link /x"},
	"SetMode":  {func(ctx context.Context, d *Directory) error { return d.SetMode(ctx, "a.md", 0o600) }, "set-mode /a.md"},
	"Restore":  {func(ctx context.Context, d *Directory) error { return d.Restore(ctx, "a.md", 1) }, "restore /a.md"},
	"Snapshot": {func(ctx context.Context, d *Directory) error { _, err := d.Snapshot(ctx); return err }, "snapshot /"},
	"RestoreSnapshot": {
		func(ctx context.Context, d *Directory) error { return d.RestoreSnapshot(ctx, 1) }, "restore-snapshot /",
	},
	"RemoveSnapshot": {
		func(ctx context.Context, d *Directory) error { return d.RemoveSnapshot(ctx, 1) }, "remove-snapshot /",
	},
	"Remove": {func(ctx context.Context, d *Directory) error { return d.Remove(ctx, "a.md", true) }, "remove /a.md"},
	"Apply": {func(ctx context.Context, d *Directory) error {
		_, _, err := d.Apply(ctx, "", []trees.Change{{Path: "a.md"}})
		return err
	}, "write /a.md"},
}

// Every other method. A new one must be put in one of the two lists.
var readers = []string{
	"Admits", "AsReadOnly", "Diff", "DiffRevision", "Find", "Grep", "History", "Interface", "List", "Lists", "Load", "Look", "OnDisk", "Place", "Quick", "Read", "ReadBlob",
	"ReadBytes", "ReadLines", "ReadLink", "ReadOnly", "ReadRevision", "ReadWithDigest", "Remembers", "Repeat", "Restorer", "Size", "Snapshots", "Stat", "Sub", "Subdirectory", "Survey", "Writable",
}

func TestMatchesWIT(t *testing.T) {
	captest.Implements(t, wit.Capability(), Interface, []string{
		"directory.read", "directory.read-lines", "directory.read-bytes", "directory.read-blob", "directory.read-with-digest", "directory.list", "directory.stat",
		"directory.read-link", "directory.history", "directory.read-revision", "directory.snapshots",
		"directory.write", "directory.write-bytes", "directory.write-blob", "directory.replace", "directory.append",
		"directory.append-bytes", "directory.edit", "directory.find", "directory.grep", "directory.diff", "directory.diff-revision",
		"directory.set-mode", "directory.make-link", "directory.make-directory", "directory.move", "directory.copy",
		"directory.remove", "directory.restore", "directory.snapshot", "directory.restore-snapshot",
		"directory.remove-snapshot",
	}, reflect.TypeFor[*Directory]())
}

func TestEveryMethodIsKnown(t *testing.T) {
	var have []string
	for method := range reflect.TypeFor[*Directory]().Methods() {
		have = append(have, method.Name)
	}
	want := append(slices.Collect(maps.Keys(mutators)), readers...)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("methods %v, want %v", have, want)
	}
}

func TestReadOnly(t *testing.T) { onBoth(t, testReadOnly) }

func testReadOnly(t *testing.T, root *Directory) {
	write(t, root, "notes/a.md", "text")
	write(t, root, "notes/deep/b.md", "text")
	notes, err := root.Sub("notes")
	if err != nil {
		t.Fatal(err)
	}
	before := dump(t, root)
	through := func(d *Directory, err error) *Directory {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	ctx := t.Context()
	for way, d := range map[string]*Directory{
		"as read-only":              notes.AsReadOnly(),
		"read-only":                 through(notes.ReadOnly(ctx)),
		"read-only twice":           through(notes.AsReadOnly().ReadOnly(ctx)),
		"subdirectory of read-only": through(root.AsReadOnly().Subdirectory(ctx, "notes")),
		"sub of read-only":          through(root.AsReadOnly().Sub("notes")),
		"subdirectory of itself":    through(notes.AsReadOnly().Subdirectory(ctx, ".")),
	} {
		for name, m := range mutators {
			err := m.call(ctx, d)
			var denied *abi.Error
			if !errors.As(err, &denied) || denied.Code != abi.CodeDenied {
				t.Errorf("%s: %s: %v", way, name, err)
				continue
			}
			want := abi.Denial{
				Operation: m.operation,
				Reason:    "this handle can only read",
				Wants:     capability.Wanted{Grant: Rights{Path: "/notes", Access: ReadWrite}},
				Private:   true, // the holder does not know of /notes
			}
			if root.exact {
				want.Wants, want.Private = capability.Wanted{Grant: DiskRights{Access: ReadWrite}}, false
			}
			if text := captest.GrantIn(denied.Denial); text != `{"workspace":{"path":"/notes","access":"read-write"}}` && (!root.exact || text != "") {
				t.Errorf("%s: %s: a manifest says %s", way, name, text)
			}
			if *denied.Denial != want {
				t.Errorf("%s: %s: got %+v, want %+v", way, name, *denied.Denial, want)
			}
		}
		if read(t, d, "a.md") != "text" {
			t.Errorf("%s: cannot read", way)
		}
	}
	if got := dump(t, root); !maps.Equal(got, before) {
		t.Errorf("a read-only handle changed %q to %q", before, got)
	}
	if err := notes.Write(ctx, "still", "writable"); err != nil {
		t.Errorf("the handle it was made from: %v", err)
	}
}

func TestGrantIsJSON(t *testing.T) {
	s := opened(t, Options{})
	for _, path := range []string{"", "/a", `/"}`, "/<&>", "/é\u2028x"} {
		d, err := s.Workspace("w").Sub(path)
		if err != nil {
			t.Fatal(err)
		}
		var denied *abi.Error
		if err := d.AsReadOnly().MakeDirectory(t.Context(), ""); !errors.As(err, &denied) {
			t.Fatal(err)
		}
		var grant struct{ Workspace struct{ Path, Access string } }
		if err := json.Unmarshal([]byte(captest.GrantIn(denied.Denial)), &grant); err != nil {
			t.Fatal(err)
		}
		if want := "/" + strings.TrimPrefix(path, "/"); grant.Workspace.Path != want || denied.Denial.Operation != "make-directory /" {
			t.Errorf("%q: %q, %s", path, denied.Denial.Operation, captest.GrantIn(denied.Denial))
		}
	}
}

// A guest learns nothing about directories above its handle: neither from denials, except for the grant, which stays with the
// host, nor from any other error.
func TestErrorsAreRelative(t *testing.T) { onBoth(t, testErrorsAreRelative) }

func testErrorsAreRelative(t *testing.T, root *Directory) {
	write(t, root, "secret/base/a.md/x", "a folder in the place of a file")
	base, err := root.Sub("secret/base")
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, err error) {
		t.Helper()
		var e *abi.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
			return
		}
		text := e.Error()
		if e.Denial != nil {
			text += e.Denial.Operation + e.Denial.Reason + e.Denial.Remedy
		}
		if strings.Contains(text, "secret") || strings.Contains(text, "base") {
			t.Errorf("%s: %s", name, text)
		}
	}
	ctx := t.Context()
	for name, m := range mutators {
		check(name+", read-only", m.call(ctx, base.AsReadOnly()))
	}
	for _, path := range []string{"a.md", "", "..", "a.md/../..", "gone", "gone/x", "a.md/x/y", "nul\x00", strings.Repeat("n", 300)} {
		_, err := base.Read(ctx, path)
		check("read "+path, err)
	}
	check("write", base.Write(ctx, "a.md", "x"))
	check("write below a file", base.Write(ctx, "a.md/x/y", "x"))
	check("append", base.Append(ctx, "a.md", "x"))
	check("make-directory", base.MakeDirectory(ctx, "a.md/x"))
	check("move", base.Move(ctx, "a.md", "a.md/b"))
	check("move over", base.Move(ctx, "a.md/x", "a.md"))
	check("copy", base.Copy(ctx, "gone", "b"))
	check("remove", base.Remove(ctx, "a.md", false))
	_, err = base.Subdirectory(ctx, "a.md/x")
	check("subdirectory", err)
	_, err = base.List(ctx, "a.md/x", 10, nil)
	check("list", err)
}

func TestSubdirectoryStartsEmpty(t *testing.T) { onBoth(t, testSubdirectoryStartsEmpty) }

func testSubdirectoryStartsEmpty(t *testing.T, root *Directory) {
	d, err := root.Sub("a/b")
	if err != nil {
		t.Fatal(err)
	}
	if all := dump(t, d); len(all) != 0 {
		t.Errorf("got %q", all)
	}
	if s, err := d.Stat(t.Context(), ""); err != nil || s != (Status{Kind: KindDirectory, Mode: 0o755}) {
		t.Errorf("got %+v, %v", s, err)
	}
	write(t, d, "f", "1")
	if read(t, root, "a/b/f") != "1" {
		t.Error("the file is not below the directory")
	}
	// The directory of a handle can be replaced by a file.
	if err := errors.Join(root.Remove(t.Context(), "a/b", true), root.Write(t.Context(), "a/b", "a file")); err != nil {
		t.Fatal(err)
	}
	_, err = d.List(t.Context(), "", 1, nil)
	expect(t, "list", err, abi.ErrInvalid, "/ is a file")
	expect(t, "write", d.Write(t.Context(), "f", ""), abi.ErrInvalid, "/ is a file")
	if err := errors.Join(root.Remove(t.Context(), "a", true), root.Write(t.Context(), "a", "a file")); err != nil {
		t.Fatal(err)
	}
	expect(t, "write", d.Write(t.Context(), "f", ""), abi.ErrInvalid, "/ is a file")
}

// nasty draws paths that try to escape.
func nasty() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"..", "..", "..", ".", "", "/", "a", "b", "in", "out", "secret", "e\u0301", "..\x00", "\x00", `..\`, `\`, "%2e%2e", "..%2f", "．．", "…", "\u2024\u2024",
		"..;", "~", "C:", "file:", "\u200b..", "..\u200b", ".. ", " ..", "...", "\r\n", "\u202e", "\xff", "\u2215", "\u0338", "‥",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 6).Draw(t, "pieces"), rapid.SampledFrom([]string{"/", "/", "/", "", "//"}).Draw(t, "between"))
	})
}

func TestResolveStaysInside(t *testing.T) {
	path := rapid.OneOf(nasty(), rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		d := &Directory{base: rapid.SampledFrom([]string{"", "/in", "/in/side"}).Draw(t, "base")}
		normal, err := d.resolve("read", path.Draw(t, "path"))
		if err != nil {
			if !errors.Is(err, abi.ErrInvalid) && !errors.Is(err, abi.ErrDenied) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		full := d.base + normal
		if full != d.base && !inside(full, d.base) {
			t.Fatalf("%q is outside %q", full, d.base)
		}
		for name := range strings.SplitSeq(strings.TrimPrefix(full, d.base), "/") {
			if name == "." || name == ".." || len(name) > maxName || strings.ContainsAny(name, "\\\x00") {
				t.Fatalf("%q has the name %q", full, name)
			}
		}
		if strings.Contains(full, "//") || strings.HasSuffix(full, "/") || len(full) > maxPath || !utf8.ValidString(full) || !norm.NFC.IsNormalString(full) {
			t.Fatalf("%q is not in normal form", full)
		}
		if again, err := (&Directory{}).resolve("read", full); again != full || err != nil {
			t.Fatalf("%q resolves to %q, %v", full, again, err)
		}
	})
}

func TestNoOperationReachesOutside(t *testing.T) { onBoth(t, testNoOperationReachesOutside) }

func testNoOperationReachesOutside(t *testing.T, root *Directory) {
	const marker = "a secret"
	for _, path := range []string{"secret", "out/secret", "in/secret", "in/out/a", "in/sidesecret", "in/side2/a", "in/side-a/b", "a", "b"} {
		write(t, root, path, marker)
	}
	base, err := root.Sub("in/side")
	if err != nil {
		t.Fatal(err)
	}
	outside := func(t failer) map[string]string {
		all := dump(t, root)
		maps.DeleteFunc(all, func(path, _ string) bool { return path == "/in/side" || inside(path, "/in/side") })
		return all
	}
	before := outside(t)
	path := nasty()
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		d := base
		saw := func(text string, err error) {
			if strings.Contains(text, marker) || err != nil && strings.Contains(err.Error(), marker) {
				t.Fatalf("read %q, %v", text, err)
			}
		}
		do := map[string]func(*rapid.T){
			"write":  func(t *rapid.T) { _ = d.Write(ctx, path.Draw(t, "path"), "x") },
			"append": func(t *rapid.T) { _ = d.Append(ctx, path.Draw(t, "path"), "x") },
			"edit":   func(t *rapid.T) { _ = d.Edit(ctx, path.Draw(t, "path"), []Replacement{{"secret", "x"}}) },
			"replace": func(t *rapid.T) {
				_, _ = d.Replace(ctx, path.Draw(t, "path"), "x", rapid.SampledFrom([]*string{nil, new(digestOf("a secret"))}).Draw(t, "digest"))
			},
			"blob":   func(t *rapid.T) { _ = d.WriteBlob(ctx, path.Draw(t, "path"), blob.New("", []byte("x"))) },
			"make":   func(t *rapid.T) { _ = d.MakeDirectory(ctx, path.Draw(t, "path")) },
			"move":   func(t *rapid.T) { _ = d.Move(ctx, path.Draw(t, "source"), path.Draw(t, "target")) },
			"copy":   func(t *rapid.T) { _ = d.Copy(ctx, path.Draw(t, "source"), path.Draw(t, "target")) },
			"remove": func(t *rapid.T) { _ = d.Remove(ctx, path.Draw(t, "path"), true) },
			"link":   func(t *rapid.T) { _ = d.MakeLink(ctx, path.Draw(t, "path"), path.Draw(t, "target")) },
			"mode":   func(t *rapid.T) { _ = d.SetMode(ctx, path.Draw(t, "path"), 0o700) },
			"restore": func(t *rapid.T) {
				_ = d.Restore(ctx, path.Draw(t, "path"), rapid.Uint64Range(0, 50).Draw(t, "revision"))
			},
			"search": func(t *rapid.T) {
				found, err := d.Find(ctx, rapid.OneOf(path, rapid.Just("**")).Draw(t, "glob"), 1000, nil)
				saw(strings.Join(found.Paths, "\n"), err)
				page, err := d.Grep(ctx, "s", Search{}, 1000, nil)
				for _, m := range page.Matches {
					saw(m.Text, err)
				}
				saw(d.Diff(ctx, path.Draw(t, "before"), path.Draw(t, "after")))
				saw(d.DiffRevision(ctx, path.Draw(t, "path"), rapid.Uint64Range(0, 50).Draw(t, "revision")))
			},
			"history": func(t *rapid.T) {
				p := path.Draw(t, "path")
				all, _ := d.History(ctx, p)
				for _, r := range all {
					b, err := d.ReadRevision(ctx, p, r.ID)
					if err != nil {
						t.Fatal(err)
					}
					saw(b.Text(ctx, 100))
					_ = b.Close()
				}
			},
			"read": func(t *rapid.T) {
				p := path.Draw(t, "path")
				saw(d.Read(ctx, p))
				saw(d.ReadLines(ctx, p, 1, nil))
				data, err := d.ReadBytes(ctx, p, 0, 100)
				saw(string(data), err)
				if b, err := d.ReadBlob(ctx, p); err == nil {
					saw(b.Text(ctx, 100))
					_ = b.Close()
				}
			},
			"list": func(t *rapid.T) {
				page, _ := d.List(ctx, path.Draw(t, "path"), 1000, nil)
				for _, e := range page.Entries {
					if strings.Contains(e.Name, "side") {
						t.Fatalf("listed %q", e.Name)
					}
				}
			},
			"subdirectory": func(t *rapid.T) {
				if sub, err := d.Subdirectory(ctx, path.Draw(t, "path")); err == nil && rapid.Bool().Draw(t, "descend") {
					d = sub
				}
			},
		}
		t.Repeat(do)
		if now := outside(t); !maps.Equal(now, before) {
			t.Fatalf("outside was %q and is %q", before, now)
		}
		_ = root.Remove(ctx, "in/side", true)
	})
}
