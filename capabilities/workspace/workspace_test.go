package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
)

var _ abi.Capability = (*Directory)(nil)

func opened(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ws.db"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		sound(t, s)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// onBoth runs a test on a workspace and on a directory of the machine.
func onBoth(t *testing.T, test func(*testing.T, *Directory)) {
	t.Run("store", func(t *testing.T) { test(t, opened(t, Options{}).Workspace("w")) })
	t.Run("disk", func(t *testing.T) { test(t, openedDisk(t, t.TempDir())) })
}

func openedDisk(t testing.TB, directory string, refuse ...string) *Directory {
	t.Helper()
	disk, err := OpenDisk(directory, DiskOptions{Refuse: refuse})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	return disk.Directory()
}

// failer is a *testing.T or a *rapid.T.
type failer interface {
	Context() context.Context
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// sound checks the database itself and what its schema promises.
func sound(t failer, s *Store) {
	t.Helper()
	if err := s.Check(context.WithoutCancel(t.Context())); err != nil { // the check also runs when the test is over
		t.Errorf("%v", err)
	}
}

// dump returns all that is in a directory: the content of each file, and "<directory>" for directories.
func dump(t failer, d *Directory) map[string]string {
	t.Helper()
	all := map[string]string{}
	var walk func(path string)
	walk = func(path string) {
		for cursor := (*string)(nil); ; {
			page, err := d.List(t.Context(), path, 100, cursor)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Entries {
				full := path + "/" + e.Name
				if e.Status.Kind == KindDirectory {
					all[full] = "<directory>"
					walk(full)
					continue
				}
				if e.Status.Kind == KindLink {
					target, err := d.ReadLink(t.Context(), full)
					if err != nil {
						t.Fatal(err)
					}
					all[full] = "-> " + target
					continue
				}
				text, err := d.Read(t.Context(), full)
				if err != nil {
					t.Fatal(err)
				}
				all[full] = text
			}
			if cursor = page.Cursor; cursor == nil {
				return
			}
		}
	}
	walk("")
	return all
}

func write(t testing.TB, d *Directory, path, text string) {
	t.Helper()
	if err := d.Write(t.Context(), path, text); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, d *Directory, path string) string {
	t.Helper()
	text, err := d.Read(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// expect checks an error's code and text.
func expect(t testing.TB, what string, err error, want *abi.Error, text string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: got %v, want %v with %q", what, err, want, text)
	}
}

func TestPathsThatNameTheSameFile(t *testing.T) {
	d := opened(t, Options{}).Workspace("w")
	for _, tt := range []struct{ write, read string }{
		{"a", "/a"},
		{"//b///c", "b/c"},
		{"./d/./e", "/d/e"},
		{"f/../g", "g"},
		{"f/x/../../h", "h"},
		{"e\u0301/A\u030a", "é/Å"},
		{"\u212b", "Å"}, // the Ångström sign is the letter
		{"日本/語", "日本/語"},
		{".hidden", "/.hidden"},
		{"..a/b..c", "..a/b..c"},
		{"'; DROP TABLE node; --", "'; DROP TABLE node; --"},
		{"%", "%"},
		{"a*b?c[d]", "a*b?c[d]"},
		{strings.Repeat("n", 255), strings.Repeat("n", 255)},
		{strings.Repeat("d/", 2047) + "f", strings.Repeat("d/", 2047) + "f"}, // 4,095 bytes and the slash in front
	} {
		makeAbove(t, d, tt.write)
		write(t, d, tt.write, tt.write)
		if got := read(t, d, tt.read); got != tt.write {
			t.Errorf("%.20q and %.20q are not the same file: %.20q", tt.write, tt.read, got)
		}
	}
	write(t, d, "case", "lower")
	write(t, d, "CASE", "upper")
	if read(t, d, "case") != "lower" {
		t.Error("names that differ in case are one file")
	}
	if _, err := d.Stat(t.Context(), "f"); !errors.Is(err, abi.ErrNotFound) {
		t.Errorf(`"f/../g" made f: %v`, err)
	}
}

func TestPathsThatAreRefused(t *testing.T) {
	d := opened(t, Options{}).Workspace("w")
	for _, tt := range []struct {
		path string
		want *abi.Error
		text string
	}{
		{"..", abi.ErrDenied, "leaves the directory"},
		{"../a", abi.ErrDenied, "leaves"},
		{"/../a", abi.ErrDenied, "leaves"},
		{"a/../../a", abi.ErrDenied, "leaves"},
		{"a/../../w/a", abi.ErrDenied, "leaves"},
		{"./.././a", abi.ErrDenied, "leaves"},
		{"a\x00b", abi.ErrInvalid, "character"},
		{"a\nb", abi.ErrInvalid, "character"},
		{"a\x7f", abi.ErrInvalid, "character"},
		{"a\u0085b", abi.ErrInvalid, "character"},
		{`a\b`, abi.ErrInvalid, "character"},
		{`..\a`, abi.ErrInvalid, "character"},
		{"\xff", abi.ErrInvalid, "UTF-8"},
		{"\xc0\xae\xc0\xae/a", abi.ErrInvalid, "UTF-8"},
		{"\xed\xa0\x80", abi.ErrInvalid, "UTF-8"},
		{"a ", abi.ErrInvalid, "space"},
		{" a", abi.ErrInvalid, "space"},
		{"a\u00a0/b", abi.ErrInvalid, "space"},
		{".. /a", abi.ErrInvalid, "space"},
		{"a.", abi.ErrInvalid, "dot"},
		{"...", abi.ErrInvalid, "dot"},
		{"a./b", abi.ErrInvalid, "dot"},
		{strings.Repeat("n", 256), abi.ErrInvalid, "256 bytes"},
		{strings.Repeat("\u0958", 85), abi.ErrInvalid, "510 bytes"}, // grows in NFC
		{strings.Repeat("d/", 2048) + "f", abi.ErrInvalid, "4097 bytes"},
		{strings.Repeat("d/", 2047) + "ff", abi.ErrInvalid, "4097 bytes"},
		{strings.Repeat("x", 100<<20), abi.ErrInvalid, "104857600 bytes"},
	} {
		name := fmt.Sprintf("%.20q", tt.path)
		_, err := d.Read(t.Context(), tt.path)
		expect(t, "read "+name, err, tt.want, tt.text)
		expect(t, "write "+name, d.Write(t.Context(), tt.path, ""), tt.want, tt.text)
		_, err = d.Subdirectory(t.Context(), tt.path)
		expect(t, "subdirectory "+name, err, tt.want, tt.text)
		_, err = d.List(t.Context(), tt.path, 1, nil)
		expect(t, "list "+name, err, tt.want, tt.text)
		expect(t, "move "+name, d.Move(t.Context(), "a", tt.path), tt.want, tt.text)
	}
	for _, path := range []string{"", "/", ".", "a/", "a/.", "a/b/..", "a//"} {
		expect(t, "write "+path, d.Write(t.Context(), path, ""), abi.ErrInvalid, "names a directory")
	}
	for _, path := range []string{"", "/", ".", "a/.."} {
		expect(t, "remove "+path, d.Remove(t.Context(), path, true), abi.ErrInvalid, "the directory itself")
		expect(t, "move from "+path, d.Move(t.Context(), path, "x"), abi.ErrInvalid, "the directory itself")
		expect(t, "copy to "+path, d.Copy(t.Context(), "x", path), abi.ErrInvalid, "the directory itself")
	}
	if all := dump(t, d); len(all) != 0 {
		t.Errorf("refused operations left %v", slices.Collect(maps.Keys(all)))
	}
}

func TestContent(t *testing.T) { onBoth(t, testContent) }

func testContent(t *testing.T, d *Directory) {
	for _, size := range []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 7} {
		text := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		write(t, d, "f", "to be replaced, and longer than some")
		write(t, d, "f", text)
		if read(t, d, "f") != text {
			t.Errorf("%d bytes came back differently", size)
		}
		for _, more := range []int{0, 1, chunkSize, chunkSize + 3} {
			add := strings.Repeat("x", more)
			if err := d.Append(t.Context(), "f", add); err != nil {
				t.Fatal(err)
			}
			text += add
		}
		if read(t, d, "f") != text {
			t.Errorf("%d bytes and appended ones came back differently", size)
		}
		for _, span := range [][2]int{{0, 1}, {size - 1, 3}, {chunkSize - 1, 2}, {chunkSize, chunkSize}, {0, abi.MaxBytes}, {len(text) - 1, 10}, {len(text), 1}, {5, 0}} {
			if span[0] < 0 {
				continue
			}
			want := text[min(span[0], len(text)):min(span[0]+span[1], len(text))]
			got, err := d.ReadBytes(t.Context(), "f", uint64(span[0]), uint32(span[1]))
			if err != nil || string(got) != want || got == nil {
				t.Errorf("%d bytes, span %v: got %d bytes, %v", size, span, len(got), err)
			}
		}
	}
	if got, err := d.ReadBytes(t.Context(), "f", math.MaxUint64, 10); err != nil || len(got) != 0 {
		t.Errorf("beyond any end: %v, %v", got, err)
	}
	_, err := d.ReadBytes(t.Context(), "f", 0, abi.MaxBytes+1)
	expect(t, "read-bytes", err, abi.ErrTooLarge, "262145")
	expect(t, "write-bytes", d.WriteBytes(t.Context(), "f", make([]byte, abi.MaxBytes+1)), abi.ErrTooLarge, "262145")
	expect(t, "append-bytes", d.AppendBytes(t.Context(), "f", make([]byte, abi.MaxBytes+1)), abi.ErrTooLarge, "262145")
}

func TestBinaryAndLargeFiles(t *testing.T) { onBoth(t, testBinaryAndLargeFiles) }

func testBinaryAndLargeFiles(t *testing.T, d *Directory) {
	if err := errors.Join(d.WriteBytes(t.Context(), "b", []byte("\x00\xff")), d.AppendBytes(t.Context(), "b", []byte{0xfe}), d.AppendBytes(t.Context(), "new", nil)); err != nil {
		t.Fatal(err)
	}
	if got, err := d.ReadBytes(t.Context(), "b", 0, 10); err != nil || string(got) != "\x00\xff\xfe" {
		t.Errorf("got %q, %v", got, err)
	}
	_, err := d.Read(t.Context(), "b")
	expect(t, "read", err, abi.ErrInvalid, "/b is not UTF-8 text; read-bytes and read-blob")
	_, err = d.ReadLines(t.Context(), "b", 1, nil)
	expect(t, "read-lines", err, abi.ErrInvalid, "not UTF-8")
	expect(t, "edit", d.Edit(t.Context(), "b", []Replacement{{"a", "b"}}), abi.ErrInvalid, "not UTF-8")
	expect(t, "write", d.Write(t.Context(), "b", "\xff"), abi.ErrInvalid, "not UTF-8")
	expect(t, "append", d.Append(t.Context(), "b", "\xff"), abi.ErrInvalid, "not UTF-8")

	text := strings.Repeat("a line of sixteen\n", abi.MaxText/18)
	expect(t, "write", d.Write(t.Context(), "big", strings.Repeat("x", abi.MaxText+1)), abi.ErrTooLarge, "16777217")
	write(t, d, "big", text)
	if read(t, d, "big") != text {
		t.Error("16 MiB came back differently")
	}
	if err := d.Append(t.Context(), "big", text); err != nil {
		t.Fatal(err)
	}
	_, err = d.Read(t.Context(), "big")
	expect(t, "read", err, abi.ErrTooLarge, fmt.Sprint(2*len(text)))
	_, err = d.ReadLines(t.Context(), "big", 2, nil)
	expect(t, "read-lines", err, abi.ErrTooLarge, "")
	expect(t, "edit", d.Edit(t.Context(), "big", nil), abi.ErrTooLarge, "")
	if got, err := d.ReadLines(t.Context(), "big", 1_000_000, new(uint32(1_000_000))); err != nil || got != "a line of sixteen\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestReadLines(t *testing.T) { onBoth(t, testReadLines) }

func testReadLines(t *testing.T, d *Directory) {
	long := strings.Repeat("é", chunkSize) // a line over more than one chunk, with a character on the border
	write(t, d, "f", "one\ntwo\r\n\n"+long+"\nlast")
	write(t, d, "empty", "")
	for _, tt := range []struct {
		path     string
		from, to uint32 // to 0: none
		want     string
	}{
		{"f", 1, 1, "one\n"},
		{"f", 2, 3, "two\r\n\n"},
		{"f", 4, 4, long + "\n"},
		{"f", 5, 5, "last"},
		{"f", 5, 0, "last"},
		{"f", 4, 9, long + "\nlast"},
		{"f", 6, 0, ""},
		{"f", math.MaxUint32, math.MaxUint32, ""},
		{"empty", 1, 0, ""},
	} {
		var to *uint32
		if tt.to > 0 {
			to = &tt.to
		}
		if got, err := d.ReadLines(t.Context(), tt.path, tt.from, to); err != nil || got != tt.want {
			t.Errorf("%s %d-%d: got %.20q, %v", tt.path, tt.from, tt.to, got, err)
		}
	}
	_, err := d.ReadLines(t.Context(), "f", 0, nil)
	expect(t, "line 0", err, abi.ErrInvalid, "the first line is 1")
	_, err = d.ReadLines(t.Context(), "f", 3, new(uint32(2)))
	expect(t, "backwards", err, abi.ErrInvalid, "lines 3 to 2")
}

func TestBlobs(t *testing.T) {
	s := opened(t, Options{Bytes: 30 << 20, BlobBytes: 25 << 20})
	d := s.Workspace("w")
	content := bytes.Repeat([]byte("\x00\xffblob"), 20<<20/6)
	big := blob.New("image/png", content)
	if err := d.WriteBlob(t.Context(), "a/big", big); err != nil {
		t.Fatal(err)
	}
	back, err := d.ReadBlob(t.Context(), "a/big")
	if err != nil {
		t.Fatal(err)
	}
	write(t, d, "a/big", "changed")
	if back.Digest(t.Context()) != big.Digest(t.Context()) || back.Size(t.Context()) != uint64(len(content)) {
		t.Error("a blob came back differently")
	}
	if got, err := back.Bytes(t.Context(), 6, 6); err != nil || string(got) != "\x00\xffblob" {
		t.Errorf("the blob changed with the file: %q, %v", got, err)
	}
	if err := d.WriteBlob(t.Context(), "a/big", back); err != nil {
		t.Fatal(err)
	}
	_, err = d.ReadBlob(t.Context(), "a/big")
	expect(t, "a second large blob", err, abi.ErrExhausted, "workspace blobs")
	if err := back.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := d.ReadBlob(t.Context(), "a/big")
	if err != nil {
		t.Fatalf("a closed blob still counts: %v", err)
	}
	if err := d.WriteBlob(t.Context(), "second", again); !errors.Is(err, abi.ErrExhausted) {
		t.Errorf("over the workspace's limit: %v", err)
	}
	_ = again.Close()
	expect(t, "a closed blob", d.WriteBlob(t.Context(), "a/big", again), abi.ErrInvalid, "closed")
	if status, err := d.Stat(t.Context(), "a/big"); err != nil || status.Size != uint64(len(content)) {
		t.Errorf("a write that failed left %+v, %v", status, err)
	}
	write(t, d, "empty", "")
	empty, err := d.ReadBlob(t.Context(), "empty")
	if err != nil || empty.Size(t.Context()) != 0 {
		t.Fatal(err)
	}
	if err := errors.Join(d.WriteBlob(t.Context(), "empty2", empty), empty.Close()); err != nil {
		t.Error(err)
	}
}

func TestEdit(t *testing.T) { onBoth(t, testEdit) }

func testEdit(t *testing.T, d *Directory) {
	const text = "alpha beta gamma\nalpha $1 \\n .* aaa\n"
	many := strings.Repeat("m", 200)
	for _, tt := range []struct {
		name         string
		replacements []Replacement
		want         string // text afterwards, or
		err          string // part of the error
	}{
		{"one", []Replacement{{"beta", "BETA"}}, "alpha BETA gamma\nalpha $1 \\n .* aaa\n", ""},
		{"dollars stay", []Replacement{{"beta", "$& $1 $$ ${x} \\0"}}, "alpha $& $1 $$ ${x} \\0 gamma\nalpha $1 \\n .* aaa\n", ""},
		{"patterns are text", []Replacement{{".*", "dot"}, {"$1", "one"}, {`\n`, "N"}}, "alpha beta gamma\nalpha one N dot aaa\n", ""},
		{"in any order", []Replacement{{"gamma", "3"}, {"beta", "2"}}, "alpha 2 3\nalpha $1 \\n .* aaa\n", ""},
		{"over lines, to nothing", []Replacement{{" gamma\nalpha", ""}}, "alpha beta $1 \\n .* aaa\n", ""},
		{"neighbours", []Replacement{{"beta", "1"}, {" gamma", "2"}}, "alpha 12\nalpha $1 \\n .* aaa\n", ""},
		{"a new text is not searched", []Replacement{{"beta", "alpha gamma"}, {"gamma", "delta"}}, "alpha alpha gamma delta\nalpha $1 \\n .* aaa\n", ""},
		{"none at all", nil, text, ""},
		{"the whole file", []Replacement{{text, "x"}}, "x", ""},
		{"missing", []Replacement{{"beta", "x"}, {"omega", "y"}}, "", "replacement 2: the old text occurs 0 times"},
		{"twice", []Replacement{{"alpha", "x"}}, "", "replacement 1: the old text occurs 2 times"},
		{"twice, overlapping", []Replacement{{"aa", "x"}}, "", "replacement 1: the old text occurs 2 times"},
		{"empty", []Replacement{{"", "x"}}, "", "replacement 1: the old text is empty"},
		{"overlap", []Replacement{{"gamma\n", "x"}, {"beta gamma", "y"}}, "", "replacements 1 and 2: their old texts overlap"},
		{"the same twice", []Replacement{{"beta", "x"}, {"beta", "y"}}, "", "replacements 1 and 2"},
		{"not UTF-8", []Replacement{{"beta", "\xff"}}, "", "replacement 1: the new text is not UTF-8"},
		{"half a character", []Replacement{{"\xa9", "x"}}, "", "occurs 0 times"},
		{"too many", make([]Replacement, 1001), "", "1001 replacements; at most 1000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			write(t, d, "f", text)
			err := d.Edit(t.Context(), "f", tt.replacements)
			if tt.err != "" {
				expect(t, "edit", err, abi.ErrInvalid, tt.err)
				tt.want = text
			} else if err != nil {
				t.Error(err)
			}
			if got := read(t, d, "f"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	write(t, d, "many", many)
	expect(t, "many times", d.Edit(t.Context(), "many", []Replacement{{"m", "x"}}), abi.ErrInvalid, "more than 100 times")
	expect(t, "missing", d.Edit(t.Context(), "no", nil), abi.ErrNotFound, "/no")
	write(t, d, "full", strings.Repeat("x", abi.MaxText-1)+"y")
	expect(t, "too large", d.Edit(t.Context(), "full", []Replacement{{"y", "yy"}}), abi.ErrTooLarge, fmt.Sprint(abi.MaxText+1))
}

func TestFilesAndDirectoriesInTheWay(t *testing.T) { onBoth(t, testFilesAndDirectoriesInTheWay) }

func testFilesAndDirectoriesInTheWay(t *testing.T, d *Directory) {
	ctx := t.Context()
	write(t, d, "file", "")
	write(t, d, "dir/inner", "")
	read := func(path string) error { _, err := d.Read(ctx, path); return err }
	list := func(path string) error { _, err := d.List(ctx, path, 1, nil); return err }
	sub := func(path string) error { _, err := d.Subdirectory(ctx, path); return err }
	stat := func(path string) error { _, err := d.Stat(ctx, path); return err }
	for _, tt := range []struct {
		name string
		err  error
		want *abi.Error
		text string
	}{
		{"read a directory", read("dir"), abi.ErrInvalid, "/dir is a directory"},
		{"read below a file", read("file/x"), abi.ErrNotFound, "/file/x"},
		{"read nothing", read("no"), abi.ErrNotFound, "/no"},
		{"stat nothing", stat("dir/no"), abi.ErrNotFound, "/dir/no"},
		{"write to a directory", d.Write(ctx, "dir", ""), abi.ErrInvalid, "/dir is a directory"},
		{"write below a file", d.Write(ctx, "file/x/y", ""), abi.ErrInvalid, "/file is a file, not a directory"},
		{"append to a directory", d.Append(ctx, "dir", ""), abi.ErrInvalid, "is a directory"},
		{"edit a directory", d.Edit(ctx, "dir", nil), abi.ErrInvalid, "is a directory"},
		{"list a file", list("file"), abi.ErrInvalid, "is a file"},
		{"list nothing", list("no"), abi.ErrNotFound, "/no"},
		{"subdirectory of a file", sub("file"), abi.ErrInvalid, "is a file"},
		{"subdirectory of nothing", sub("no"), abi.ErrNotFound, "/no"},
		{"make a directory over a file", d.MakeDirectory(ctx, "file"), abi.ErrAlreadyExists, "/file"},
		{"make a directory below a file", d.MakeDirectory(ctx, "file/x"), abi.ErrInvalid, "/file is a file"},
		{"move nothing", d.Move(ctx, "no", "x"), abi.ErrNotFound, "/no"},
		{"move onto a file", d.Move(ctx, "dir", "file"), abi.ErrAlreadyExists, "/file"},
		{"move onto a directory", d.Move(ctx, "file", "dir"), abi.ErrAlreadyExists, "/dir"},
		{"move below a file", d.Move(ctx, "dir", "file/x"), abi.ErrInvalid, "/file is a file"},
		{"move into itself", d.Move(ctx, "dir", "dir/x/y"), abi.ErrInvalid, "cannot move /dir into itself"},
		{"move onto itself", d.Move(ctx, "dir", "dir/../dir"), abi.ErrInvalid, "into itself"},
		{"copy into itself", d.Copy(ctx, "dir", "dir/x"), abi.ErrInvalid, "cannot copy /dir into itself"},
		{"copy a file below itself", d.Copy(ctx, "file", "file/x"), abi.ErrInvalid, "into itself"},
		{"remove a full directory", d.Remove(ctx, "dir", false), abi.ErrInvalid, "not empty"},
		{"remove nothing", d.Remove(ctx, "no", true), abi.ErrNotFound, "/no"},
	} {
		expect(t, tt.name, tt.err, tt.want, tt.text)
	}
	if got := dump(t, d); len(got) != 3 {
		t.Errorf("a refused operation changed something: %q", got)
	}
	if err := errors.Join(d.MakeDirectory(ctx, "dir"), d.MakeDirectory(ctx, ""), d.Remove(ctx, "dir/inner", false), d.Remove(ctx, "dir", false)); err != nil {
		t.Error(err)
	}
}

func TestTreesMoveWhole(t *testing.T) { onBoth(t, testTreesMoveWhole) }

func testTreesMoveWhole(t *testing.T, d *Directory) {
	ctx := t.Context()
	const n = 1500
	for i := range n {
		write(t, d, fmt.Sprintf("from/d%d/f%d", i%7, i), fmt.Sprint(i))
	}
	write(t, d, "from-not", "a neighbour in byte order")
	write(t, d, "from0", "another")
	write(t, d, "from/d0/big", strings.Repeat("b", 3*chunkSize))
	before := dump(t, d)
	sub := func(prefix string) map[string]string {
		m := map[string]string{}
		for path, content := range dump(t, d) {
			if inside(path, prefix) {
				m[strings.TrimPrefix(path, prefix)] = content
			}
		}
		return m
	}
	want := sub("/from")
	if err := d.Move(ctx, "from", "to/日本"); err != nil {
		t.Fatal(err)
	}
	if got := sub("/to/日本"); !maps.Equal(got, want) || len(got) != n+8 {
		t.Errorf("moved %d of %d", len(got), len(want))
	}
	if len(sub("/from")) != 0 || read(t, d, "from-not") == "" || read(t, d, "from0") == "" {
		t.Error("the source is still there, or a neighbour is not")
	}
	if err := errors.Join(d.Move(ctx, "to/日本", "from"), d.Remove(ctx, "to", false)); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(dump(t, d), before) {
		t.Error("there and back again is not the same")
	}
	if err := d.Copy(ctx, "from", "copy"); err != nil {
		t.Fatal(err)
	}
	write(t, d, "from/d0/big", "changed after the copy")
	if !maps.Equal(sub("/copy"), want) {
		t.Error("the copy differs")
	}
	if err := errors.Join(d.Remove(ctx, "from", true), d.Remove(ctx, "copy", true)); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, d); len(got) != 2 {
		t.Errorf("left %v", slices.Collect(maps.Keys(got)))
	}
}

// makeAbove makes directories above a path until one operation can make the rest.
func makeAbove(t testing.TB, d *Directory, path string) {
	t.Helper()
	all := strings.Split(path, "/")
	for made := maxMade; made < len(all); made += maxMade {
		if err := d.MakeDirectory(t.Context(), strings.Join(all[:made], "/")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMoveKeepsPathsShortEnough(t *testing.T) {
	d := opened(t, Options{}).Workspace("w")
	deep := "a/" + strings.Repeat("d/", 2000) + "f"
	makeAbove(t, d, deep)
	write(t, d, deep, "")
	if err := d.MakeDirectory(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	long := "b/" + strings.Repeat("x", 100)
	expect(t, "move", d.Move(t.Context(), "a", long), abi.ErrInvalid, "would have 4105 bytes")
	expect(t, "copy", d.Copy(t.Context(), "a", long), abi.ErrInvalid, "would have 4105 bytes")
	if err := d.Move(t.Context(), "a", "b/"+strings.Repeat("x", 91)); err != nil {
		t.Error(err)
	}
}

func TestListPages(t *testing.T) { onBoth(t, testListPages) }

func testListPages(t *testing.T, d *Directory) {
	var want []string
	for i := range 1005 {
		name := fmt.Sprintf("n%04d", i)
		want = append(want, name)
		write(t, d, "dir/"+name, "12345")
	}
	write(t, d, "dir/Z/below", "")
	write(t, d, "dir/é", "")
	want = append(append([]string{"Z"}, want...), "é")
	for _, limit := range []uint32{1, 500, 1000, math.MaxUint32} {
		var got []string
		var cursor *string
		for {
			page, err := d.List(t.Context(), "dir", limit, cursor)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Entries) > min(int(limit), 1000) || len(page.Entries) == 0 {
				t.Fatalf("a page of %d", len(page.Entries))
			}
			for _, e := range page.Entries {
				got = append(got, e.Name)
			}
			if cursor = page.Cursor; cursor == nil {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %d names, want %d", limit, len(got), len(want))
		}
	}
	_, err := d.List(t.Context(), "dir", 0, nil)
	expect(t, "limit 0", err, abi.ErrInvalid, "limit")
	for _, cursor := range []string{"", "?", "AA", "Li4vLi4", "YQ==", "_w", strings.Repeat("YWFh", 1000)} { // NUL, "../..", padding, 0xff, long
		if _, err := d.List(t.Context(), "dir", 10, &cursor); cursor != "AA" && !errors.Is(err, abi.ErrInvalid) {
			t.Errorf("cursor %.10q: %v", cursor, err)
		}
	}
}

func TestStatus(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	d := opened(t, Options{Now: func() time.Time { return now }}).Workspace("w")
	stat := func(path string) Status {
		t.Helper()
		s, err := d.Stat(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	check := func(path string, want Status) {
		t.Helper()
		if got := stat(path); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	check("", Status{Kind: KindDirectory, Mode: 0o755})
	write(t, d, "dir/f", "12345")
	check("dir", Status{KindDirectory, 0, 1_700_000_000_000, 0o755})
	check("dir/f", Status{KindFile, 5, 1_700_000_000_000, 0o644})
	now = now.Add(time.Second)
	if err := errors.Join(d.Append(t.Context(), "dir/f", "6"), d.Move(t.Context(), "dir", "moved")); err != nil {
		t.Fatal(err)
	}
	check("moved/f", Status{KindFile, 6, 1_700_000_001_000, 0o644})
	now = now.Add(time.Second)
	if err := d.Copy(t.Context(), "moved", "copied"); err != nil {
		t.Fatal(err)
	}
	check("moved/f", Status{KindFile, 6, 1_700_000_001_000, 0o644})
	check("copied/f", Status{KindFile, 6, 1_700_000_002_000, 0o644})
	now = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	write(t, d, "old", "")
	check("old", Status{Mode: 0o644})
}

func TestLimits(t *testing.T) {
	d := opened(t, Options{Bytes: 10, Files: 4}).Workspace("w")
	ctx := t.Context()
	write(t, d, "a/b", "12345")
	_, replaced := d.Replace(ctx, "a/b", "12345678901", new(digestOf("12345")))
	for name, err := range map[string]error{
		"write":     d.Write(ctx, "c", "123456"),
		"overwrite": d.Write(ctx, "a/b", "12345678901"),
		"append":    d.Append(ctx, "a/b", "123456"),
		"edit":      d.Edit(ctx, "a/b", []Replacement{{"1", "1234567"}}),
		"replace":   replaced,
		"bytes":     d.WriteBytes(ctx, "c", make([]byte, 6)),
		"blob":      d.WriteBlob(ctx, "c", blob.New("", make([]byte, 6))),
	} {
		expect(t, name, err, abi.ErrExhausted, "bytes: limit 10, needed 11")
	}
	expect(t, "directories", d.Write(ctx, "x/y/z", ""), abi.ErrExhausted, "files and directories: limit 4, needed 5")
	expect(t, "make-directory", d.MakeDirectory(ctx, "x/y/z"), abi.ErrExhausted, "limit 4, needed 5")
	if err := d.Copy(ctx, "a", "c"); err != nil { // exactly full: 4 nodes, 10 bytes
		t.Fatal(err)
	}
	expect(t, "copy", d.Copy(ctx, "a/b", "d"), abi.ErrExhausted, "limit 4, needed 5")
	expect(t, "move making directories", d.Move(ctx, "a/b", "x/y"), abi.ErrExhausted, "limit 4, needed 5")
	if err := errors.Join(d.Move(ctx, "a/b", "a/moved"), d.Write(ctx, "c/b", "1"), d.Remove(ctx, "a", true), d.Write(ctx, "x/y", "123456789")); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, d); !maps.Equal(got, map[string]string{"/c": "<directory>", "/c/b": "1", "/x": "<directory>", "/x/y": "123456789"}) {
		t.Errorf("got %q", got)
	}
}

func TestLoweredLimitLetsShrink(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ws.db")
	for _, o := range []Options{{}, {Bytes: 3, Files: 1}} {
		s, err := Open(t.Context(), file, o)
		if err != nil {
			t.Fatal(err)
		}
		d := s.Workspace("w")
		if o.Bytes == 0 {
			write(t, d, "a", "12345")
			write(t, d, "b", "12345")
		} else {
			write(t, d, "a", "1234")
			expect(t, "grow", d.Write(t.Context(), "a", "12345"), abi.ErrExhausted, "limit 3, needed 10")
			if err := d.Remove(t.Context(), "b", false); err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWorkspacesAreApart(t *testing.T) {
	s := opened(t, Options{})
	for _, name := range []string{"", "a", "A", "a/b", "../a"} {
		d := s.Workspace(name)
		write(t, d, "f", name)
		write(t, d, "dir/f", name)
		if err := errors.Join(d.Move(t.Context(), "dir", "moved"), d.Copy(t.Context(), "moved", "copy"), d.Remove(t.Context(), "copy", true)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"", "a", "A", "a/b", "../a"} {
		want := map[string]string{"/f": name, "/moved": "<directory>", "/moved/f": name}
		if got := dump(t, s.Workspace(name)); !maps.Equal(got, want) {
			t.Errorf("%q has %q", name, got)
		}
	}
}

func TestCancelled(t *testing.T) { onBoth(t, testCancelled) }

func testCancelled(t *testing.T, d *Directory) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := d.Read(ctx, "a")
	for _, err := range []error{err, d.Write(ctx, "a", ""), d.Copy(ctx, "a", "b")} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	d := opened(b, Options{}).Workspace("w")
	write(b, d, "notes/2026/a.md", strings.Repeat("x", 1000))
	for b.Loop() {
		read(b, d, "notes/2026/a.md")
	}
}

func BenchmarkWrite(b *testing.B) {
	d := opened(b, Options{}).Workspace("w")
	for i := 0; b.Loop(); i++ {
		write(b, d, "notes/2026/a.md", fmt.Sprintf("%1000d", i))
	}
}
