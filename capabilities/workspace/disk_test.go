package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
)

// machine is a directory with a secret next to the directory that a guest gets.
func machine(t *testing.T) (outside, inside string) {
	t.Helper()
	outside = t.TempDir()
	inside = filepath.Join(outside, "granted")
	for _, err := range []error{os.Mkdir(inside, 0o755), os.WriteFile(filepath.Join(outside, "secret"), []byte("a secret"), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return outside, inside
}

// unharmed checks that the secret is unchanged, and that there are no other files.
func unharmed(t *testing.T, outside string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(outside, "secret"))
	if err != nil || string(data) != "a secret" {
		t.Errorf("the secret is now %q, %v", data, err)
	}
	if info, err := os.Stat(filepath.Join(outside, "secret")); err != nil || info.Mode() != 0o644 {
		t.Errorf("the mode of the secret is now %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 2 {
		t.Errorf("outside are %v, %v", entries, err)
	}
}

// attacks perform every operation on a path, and return what it revealed.
func attacks(ctx context.Context, d *Directory, path string) (seen string, errs []error) {
	text, err := d.Read(ctx, path)
	lines, errLines := d.ReadLines(ctx, path, 1, nil)
	data, errData := d.ReadBytes(ctx, path, 0, 100)
	diff, errDiff := d.Diff(ctx, path, path)
	page, errList := d.List(ctx, path, 10, nil)
	below, errBelow := d.Read(ctx, path+"/secret")
	errs = []error{err, errLines, errData, errDiff, errList, errBelow}
	if b, err := d.ReadBlob(ctx, path); err == nil {
		more, _ := b.Text(ctx, 100)
		text += more
		_ = b.Close()
	} else {
		errs = append(errs, err)
	}
	_, errSub := d.Subdirectory(ctx, path)
	errs = append(errs, errSub, d.Write(ctx, path, "x"), d.Append(ctx, path, "x"), d.Edit(ctx, path, []Replacement{{"secret", "x"}}),
		d.Write(ctx, path+"/new", "x"), d.MakeDirectory(ctx, path+"/newdir"), d.MakeLink(ctx, path+"/newlink", "x"), d.SetMode(ctx, path, 0o777),
		d.Remove(ctx, path+"/secret", true), d.Move(ctx, path+"/secret", "stolen"), d.Copy(ctx, path+"/secret", "stolen"))
	return fmt.Sprint(text, lines, string(data), diff, page, below), errs
}

func TestLinksOutOfTheDirectory(t *testing.T) {
	outside, inside := machine(t)
	d := openedDisk(t, inside)
	links := map[string]string{
		"absolute": filepath.Join(outside, "secret"), "relative": "../secret", "folder": "..", "root": "/", "proc": "/proc/self/root" + outside,
		"twice": "relative", "around": "in/../../secret", "in/deep": "../../secret", "dangling": "../not-there", "cwd": "/proc/self/cwd",
	}
	for link, target := range links {
		name := filepath.Join(inside, link)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.Symlink(target, name)); err != nil {
			t.Fatal(err)
		}
	}
	for link := range links {
		seen, errs := attacks(t.Context(), d, link)
		if strings.Contains(seen, "secret") {
			t.Errorf("%s: saw %s", link, seen)
		}
		for i, err := range errs {
			if !errors.Is(err, abi.ErrDenied) || strings.Contains(err.Error(), outside) {
				t.Errorf("%s, attack %d: %v", link, i, err)
			}
		}
	}
	if found, err := d.Find(t.Context(), "**", 100, nil); err != nil || strings.Contains(fmt.Sprint(found), "secret") {
		t.Errorf("%v, %v", found, err)
	}
	if page, err := d.Grep(t.Context(), ".", Search{}, 100, nil); err != nil || page.Matches != nil {
		t.Errorf("%v, %v", page, err)
	}
	unharmed(t, outside)
	// The guest may move and remove the links themselves.
	if err := errors.Join(d.Move(t.Context(), "absolute", "moved"), d.Copy(t.Context(), "moved", "copied"), d.Remove(t.Context(), "moved", true)); err != nil {
		t.Error(err)
	}
	unharmed(t, outside)
}

// A guest's own links: none leads out when it is made, nor when a directory on its way is moved.
func TestLinks(t *testing.T) { onBoth(t, testLinks) }

func testLinks(t *testing.T, root *Directory) {
	ctx := t.Context()
	write(t, root, "secret", "a secret")
	write(t, root, "in/a/f", "content")
	d, err := root.Subdirectory(ctx, "in")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"..", "../secret", "../../secret", "a/../../secret", "./../secret"} {
		expect(t, "make-link to "+target, d.MakeLink(ctx, "l", target), abi.ErrDenied, "leaves")
	}
	for _, target := range []string{"/secret", "", "a\x00", "\xff", strings.Repeat("a/", 3000)} {
		expect(t, fmt.Sprintf("make-link to %.10q", target), d.MakeLink(ctx, "l", target), abi.ErrInvalid, "")
	}
	for link, target := range map[string]string{"l": "a/f", "a/up": "..", "dir": "a", "self": "self", "x": "y", "y": "x", "gone": "not-there", "a/b/far": "../../l"} {
		if err := d.MakeLink(ctx, link, target); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "a second link", d.MakeLink(ctx, "l", "a"), abi.ErrAlreadyExists, "/l")
	for _, path := range []string{"l", "a/up/l", "dir/f", "dir/up/a/up/l", "a/b/far", "a/up/dir/../l"} {
		if got := read(t, d, path); got != "content" {
			t.Errorf("%s: %q", path, got)
		}
	}
	for _, path := range []string{"self", "x", "self/f", "x/y"} {
		_, err := d.Read(ctx, path)
		expect(t, path, err, abi.ErrInvalid, "too many links")
	}
	_, err = d.Read(ctx, "gone")
	expect(t, "a dangling link", err, abi.ErrNotFound, "/gone")
	write(t, d, "gone", "made through the link")
	if read(t, d, "not-there") != "made through the link" {
		t.Error("another file was made")
	}
	write(t, d, "dir/new/g", "1")
	if read(t, d, "a/new/g") != "1" {
		t.Error("another directory was made")
	}
	if s, err := d.Stat(ctx, "l"); err != nil || s.Kind != KindLink || s.Size != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if target, err := d.ReadLink(ctx, "a/up"); err != nil || target != ".." {
		t.Errorf("%q, %v", target, err)
	}
	_, err = d.ReadLink(ctx, "a")
	expect(t, "read-link", err, abi.ErrInvalid, "is a directory, not a link")
	page, err := d.List(ctx, "dir/up", 100, nil)
	if err != nil || len(page.Entries) != 8 {
		t.Errorf("%v, %v", page, err)
	}
	expect(t, "move into itself, through a link", d.Move(ctx, "a", "dir/x"), abi.ErrInvalid, "into itself")
	expect(t, "copy into itself, through a link", d.Copy(ctx, "a", "a/up/dir/x"), abi.ErrInvalid, "into itself")

	// A handle for the folder of a link is not a handle for its target.
	sub, err := d.Subdirectory(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"up/l", "b/far", "up/gone"} {
		_, err := sub.Read(ctx, path)
		expect(t, path, err, abi.ErrDenied, "a link leads out")
		expect(t, path, sub.Write(ctx, path, "x"), abi.ErrDenied, "a link leads out")
	}
	// A link that led somewhere inside leads out when it is moved up.
	if err := root.Move(ctx, "in/a/up", "up"); err != nil {
		t.Fatal(err)
	}
	_, err = root.Read(ctx, "up/secret")
	expect(t, "a link that was moved", err, abi.ErrDenied, "a link leads out")
	// A handle made through a link is a handle for the target at that time.
	through, err := d.Subdirectory(ctx, "dir")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Remove(ctx, "dir", false), d.MakeLink(ctx, "dir", ".")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, through, "f"); got != "content" {
		t.Errorf("%q", got)
	}
	// The directory of a handle is replaced by a link: the handle does not follow.
	if err := errors.Join(root.Move(ctx, "in", "elsewhere"), root.MakeLink(ctx, "in", ".")); err != nil {
		t.Fatal(err)
	}
	_, err = d.Read(ctx, "secret")
	if err == nil {
		t.Error("the handle follows a link in its own path")
	}
	if err := d.Write(ctx, "new", ""); err == nil {
		t.Error("the handle writes through a link in its own path")
	}
	// Removing a directory does not follow links in it.
	if err := errors.Join(root.Remove(ctx, "in", true), root.Remove(ctx, "elsewhere", true)); err != nil {
		t.Fatal(err)
	}
	if read(t, root, "secret") != "a secret" {
		t.Error("a link was followed to remove")
	}
}

// Links to the directory itself, and through missing files.
func TestLinksToTheTop(t *testing.T) { onBoth(t, testLinksToTheTop) }

func testLinksToTheTop(t *testing.T, d *Directory) {
	ctx := t.Context()
	write(t, d, "a/f", "content")
	for link, target := range map[string]string{"here": ".", "a/top": "..", "odd": "missing/..", "child": "a/..", "down": "a/../a"} {
		if err := d.MakeLink(ctx, link, target); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{"here", "a/top", "odd", "child"} {
		expect(t, link, d.Write(ctx, link, "x"), abi.ErrInvalid, "is a directory")
		expect(t, link, d.Append(ctx, link, "x"), abi.ErrInvalid, "is a directory")
		expect(t, link, d.WriteBlob(ctx, link, blob.New("", nil)), abi.ErrInvalid, "is a directory")
		expect(t, link, d.SetMode(ctx, link, 0o700), abi.ErrInvalid, "the directory itself")
		_, err := d.History(ctx, link)
		_, errRevision := d.ReadRevision(ctx, link, 1)
		for _, err := range []error{err, errRevision, d.Restore(ctx, link, 1)} {
			if !errors.Is(err, abi.ErrInvalid) && !errors.Is(err, abi.ErrUnavailable) {
				t.Errorf("%s: %v", link, err)
			}
		}
		if err := d.MakeDirectory(ctx, link); err != nil {
			t.Errorf("%s: %v", link, err)
		}
		if got := read(t, d, link+"/a/f"); got != "content" {
			t.Errorf("%s: %q", link, got)
		}
	}
	if got := read(t, d, "down/f"); got != "content" {
		t.Errorf("%q", got)
	}
}

// While a guest works, another process on the machine keeps swapping a directory for a link that leads out.
func TestRenameRaces(t *testing.T) {
	outside, inside := machine(t)
	d := openedDisk(t, inside)
	real, swapped, link := filepath.Join(inside, "real"), filepath.Join(inside, "p"), filepath.Join(inside, "link")
	if err := errors.Join(os.Mkdir(swapped, 0o755), os.WriteFile(filepath.Join(swapped, "secret"), []byte("mine"), 0o644), os.Symlink("..", link)); err != nil {
		t.Fatal(err)
	}
	sub, err := d.Subdirectory(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var race sync.WaitGroup
	race.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				// Errors are ignored: if the guest has moved a file, the next round continues with what is there.
				_ = os.Rename(swapped, real)
				_ = os.Rename(link, swapped)
				_ = os.Rename(swapped, link)
				_ = os.Rename(real, swapped)
			}
		}
	})
	for range 100 {
		for _, h := range []struct {
			d    *Directory
			path string
		}{{d, "p/secret"}, {sub, "secret"}} {
			if text, err := h.d.Read(t.Context(), h.path); err == nil && strings.Contains(text, "a secret") {
				t.Fatal("read the secret")
			}
			_ = h.d.Append(t.Context(), h.path, "x")
			_ = h.d.Write(t.Context(), h.path, "mine")
			_ = h.d.Copy(t.Context(), h.path, h.path+"2")
			_ = h.d.SetMode(t.Context(), h.path, 0o600)
			if page, err := h.d.List(t.Context(), strings.TrimSuffix(h.path, "secret"), 10, nil); err == nil && strings.Contains(fmt.Sprint(page), "granted") {
				t.Fatal("listed what is outside")
			}
			if found, err := h.d.Find(t.Context(), "**", 100, nil); err == nil && strings.Contains(fmt.Sprint(found), "granted") {
				t.Fatal("found what is outside")
			}
			_ = h.d.Remove(t.Context(), h.path+"2", true)
		}
	}
	close(stop)
	race.Wait()
	unharmed(t, outside)
	if info, err := os.Stat(filepath.Join(outside, "secret")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// The machine takes the directory of a handle away just after a write has made it: an error and no more.
func TestBaseTakenAway(t *testing.T) {
	_, inside := machine(t)
	d := openedDisk(t, inside)
	if err := d.MakeDirectory(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	sub, err := d.Subdirectory(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var race sync.WaitGroup
	race.Go(func() {
		for ctx.Err() == nil {
			_ = os.RemoveAll(filepath.Join(inside, "p")) // there or not
		}
	})
	defer race.Wait()
	defer stop()
	for range 500 {
		if err := sub.Write(t.Context(), "secret", "mine"); err != nil && strings.Contains(err.Error(), inside) {
			t.Fatal(err)
		}
	}
}

// The same at the critical moment: after the guest's path was checked, and before it is used.
func TestSwappedAfterTheLook(t *testing.T) {
	outside, inside := machine(t)
	d := openedDisk(t, inside)
	write(t, d, "p/secret", "mine")
	write(t, d, "p/q/x", "mine")
	f := &folder{ctx: t.Context(), disk: d.volume.(*Disk), root: d.volume.(*Disk).root}
	n, err := f.lookup("/p/secret")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := f.lookup("/p/q")
	if err != nil {
		t.Fatal(err)
	}
	sub := &folder{ctx: t.Context(), disk: d.volume.(*Disk), base: "/p"}
	if err := sub.descend(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.root.Close() }()
	p := filepath.Join(inside, "p")
	if err := errors.Join(os.Rename(p, filepath.Join(inside, "real")), os.Symlink("..", p)); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"extend": f.extend("/p/secret", n, []byte("x")), "put": f.put("/p/secret", n, 1, strings.NewReader("x")),
		"put new": f.put("/p/new", nil, 1, strings.NewReader("x")), "make directory": f.makeDirectory("/p/new"),
		"make link": f.makeLink("/p/new", "x"), "set mode": f.setMode("/p/secret", n, 0o777),
		"move out": f.move(n, "/p/secret", "/stolen"), "move in": f.move(whole, "/real/q", "/p/new"),
		"copy": f.copy(n, "/p/secret", "/stolen"), "copy in": f.copy(whole, "/real/q", "/p/new"),
		"remove": f.remove(n, "/p/secret", false), "remove all": f.remove(whole, "/p/granted", true),
	} {
		if err == nil || strings.Contains(err.Error(), outside) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for piece, err := range f.content("/p/secret", n, 0) {
		if err == nil {
			t.Errorf("read %q", piece)
		}
	}
	if entries, err := f.entries("/p", "", 10); err == nil {
		t.Errorf("listed %v", entries)
	}
	// A handle that has opened its directory continues in that one.
	for piece, err := range sub.content("/secret", n, 0) {
		if err != nil || string(piece) != "mine" {
			t.Errorf("read %q, %v", piece, err)
		}
	}
	late := &folder{ctx: t.Context(), disk: d.volume.(*Disk), base: "/p"}
	if err := late.descend(); !errors.Is(err, abi.ErrInvalid) {
		t.Errorf("a link in the place of the handle's directory: %v", err)
	}
	unharmed(t, outside)
	if info, err := os.Stat(filepath.Join(outside, "secret")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A file with another name outside can be read, and no change reaches it under that name.
func TestHardLinks(t *testing.T) {
	outside, inside := machine(t)
	d := openedDisk(t, inside)
	for name, change := range map[string]func(string) error{
		"write":  func(path string) error { return d.Write(t.Context(), path, "mine") },
		"append": func(path string) error { return d.Append(t.Context(), path, "!") },
		"edit":   func(path string) error { return d.Edit(t.Context(), path, []Replacement{{"secret", "x"}}) },
		"replace": func(path string) error {
			_, err := d.Replace(t.Context(), path, "mine", new(digestOf("a secret")))
			return err
		},
		"remove": func(path string) error { return d.Remove(t.Context(), path, false) },
		"move":   func(path string) error { return d.Move(t.Context(), path, "elsewhere") },
		"mode":   func(path string) error { return d.SetMode(t.Context(), path, 0o666) },
	} {
		if err := os.Link(filepath.Join(outside, "secret"), filepath.Join(inside, name)); err != nil {
			t.Fatal(err)
		}
		if err := change(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		unharmed(t, outside)
	}
	if got := read(t, d, "append"); got != "a secret!" {
		t.Errorf("got %q", got)
	}
}

// No operation waits for a pipe, and none opens a device.
func TestSpecialFiles(t *testing.T) {
	_, inside := machine(t)
	if err := errors.Join(syscall.Mkfifo(filepath.Join(inside, "pipe"), 0o666), os.Symlink("pipe", filepath.Join(inside, "link"))); err != nil {
		t.Fatal(err)
	}
	d := openedDisk(t, inside)
	for _, path := range []string{"pipe", "link"} {
		_, errs := attacks(t.Context(), d, path)
		for i, err := range errs {
			if !errors.Is(err, abi.ErrInvalid) && !errors.Is(err, abi.ErrNotFound) {
				t.Errorf("%s, attack %d: %v", path, i, err)
			}
		}
	}
	all, partial := grepAll(t, d, "", Search{}, 10)
	page, err := d.List(t.Context(), "", 10, nil)
	if err != nil || len(all) != 0 || partial != 0 || len(page.Entries) != 1 {
		t.Errorf("%v, %d, %v, %v", all, partial, page, err)
	}
	// A pipe replaces a file that was looked up.
	f := &folder{ctx: t.Context(), root: d.volume.(*Disk).root}
	write(t, d, "file", "x")
	n, err := f.lookup("/file")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(inside, "pipe"), filepath.Join(inside, "file")); err != nil {
		t.Fatal(err)
	}
	for _, err := range f.content("/file", n, 0) {
		expect(t, "read", err, abi.ErrConflict, "/file changed")
	}
	if err := f.extend("/file", n, []byte("x")); err == nil {
		t.Error("appended to a pipe")
	}
}

func TestNamesOnDisk(t *testing.T) {
	_, inside := machine(t)
	for _, name := range []string{"e\u0301", "\u00e9", "ends.", " space", `back\slash`, "new\nline", "bad\xff", ".stile-temporary", "CON", "fine"} {
		if err := os.WriteFile(filepath.Join(inside, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := openedDisk(t, inside)
	all := dump(t, d)
	for _, name := range []string{"e\u0301", "\u00e9", "CON", "fine"} { // as they are, and not one for the other
		if all["/"+name] != name {
			t.Errorf("%q holds %q", name, all["/"+name])
		}
	}
	if len(all) != 4 {
		t.Errorf("listed %q", all)
	}
	expect(t, "a name of the host's", d.Write(t.Context(), ".stile-temporary", ""), abi.ErrInvalid, "reserved for the host")

	// A directory that only looks empty is not removed as an empty directory.
	for _, name := range []string{"ends.", " space", ".stile-temporary"} {
		directory := filepath.Join(inside, "directory")
		if err := errors.Join(os.Mkdir(directory, 0o755), os.WriteFile(filepath.Join(directory, name), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		expect(t, name, d.Remove(t.Context(), "directory", false), abi.ErrInvalid, "not empty")
		if err := d.Remove(t.Context(), "directory", true); err != nil {
			t.Error(err)
		}
	}
}

// Files that other programs remove during the search are not found; the others are.
func TestRemovedWhileSearched(t *testing.T) {
	inside := t.TempDir()
	d := openedDisk(t, inside)
	for _, path := range []string{"a/in", "b", "c"} {
		write(t, d, path, "needle")
	}
	s, err := d.searcher("needle", Search{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	err = d.view(t.Context(), "grep", func(o *op) error {
		s.walk = walk{op: o, budget: d.budget()}
		gone, err := o.lookup("/b")
		if err != nil {
			return err
		}
		return s.run("", "", func(path string, next []dirent) error {
			switch path {
			case "/a":
				return os.RemoveAll(filepath.Join(inside, "a"))
			case "/b":
				return errors.Join(os.Remove(filepath.Join(inside, "b")), s.file(place{path: path, line: 1, from: 1}, gone))
			default:
				return s.entry(path, next)
			}
		})
	})
	if err != nil || len(s.page.Matches) != 1 || s.page.Matches[0].Path != "c" {
		t.Errorf("%+v, %v", s.page, err)
	}
}

func TestDiskKeepsNoHistory(t *testing.T) {
	d := openedDisk(t, t.TempDir())
	write(t, d, "a", "")
	_, errHistory := d.History(t.Context(), "a")
	_, errRevision := d.ReadRevision(t.Context(), "a", 1)
	_, errSnapshot := d.Snapshot(t.Context())
	_, errSnapshots := d.Snapshots(t.Context())
	for _, err := range []error{
		errHistory, errRevision, errSnapshot, errSnapshots, d.Restore(t.Context(), "a", 1), d.RestoreSnapshot(t.Context(), 1), d.RemoveSnapshot(t.Context(), 1),
	} {
		expect(t, "archive", err, abi.ErrUnavailable, "on disk keeps no history")
	}
}

// The host's own folders are closed to guests: the folders, their contents and their parents, under any name.
func TestRefusedDirectories(t *testing.T) {
	base := t.TempDir()
	home := filepath.Join(base, "data", "stile")
	beside := filepath.Join(base, "beside")
	if err := errors.Join(os.MkdirAll(filepath.Join(home, "objects"), 0o755), os.Mkdir(beside, 0o755), os.Symlink("data", filepath.Join(base, "alias"))); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(base, "alias", "not", "there")
	for _, tt := range []struct {
		directory, refuse string
		refused           bool
	}{
		{home, home, true},
		{filepath.Join(home, "objects"), home, true},
		{filepath.Dir(home), home, true},
		{base, home, true},
		{"/", home, true},
		{base, beside, true},
		{filepath.Join(base, "alias"), home, true},
		{filepath.Join(base, "alias", "stile", "objects"), home, true},
		{home + "/../stile/.", home, true},
		{home, filepath.Join(base, "alias", "stile"), true},
		{filepath.Join(base, "data"), missing, true},
		{beside, home, false},
		{beside, missing, false},
		{filepath.Join(home, "objects"), missing, false},
	} {
		disk, err := OpenDisk(tt.directory, DiskOptions{Refuse: []string{filepath.Join(base, "other"), tt.refuse}})
		var refused *RefusedError
		if errors.As(err, &refused) != tt.refused || !tt.refused && err != nil {
			t.Errorf("%s with %s: %v", tt.directory, tt.refuse, err)
		}
		if err == nil {
			_ = disk.Close()
		}
	}
	if _, err := OpenDisk(filepath.Join(base, "none"), DiskOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestNamesThatAreNotShown has a directory full of names that are not valid in a path. They are read in batches, not one by one.
func TestNamesThatAreNotShown(t *testing.T) {
	root := t.TempDir()
	for i := range 3000 {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprintf("a%06d.", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "good"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := openedDisk(t, root)
	ctx, cancel := context.WithCancel(t.Context())
	page, err := d.List(ctx, "", 1, nil)
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Name != "good" {
		t.Errorf("got %+v, %v", page, err)
	}
	cancel()
	if _, err := d.List(ctx, "", 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call got %v", err)
	}
}

// TestDirectoriesAreReadOnce walks and copies directories with many entries, including deep ones, in small pages. The number of names read is a
// small multiple of the number of entries.
func TestDirectoriesAreReadOnce(t *testing.T) {
	for name, c := range map[string]struct{ depth, entries, ahead int }{
		"wide": {1, 12_000, 0}, "deep": {12, 1000, 0}, "deep, with little room": {6, 3000, 5000}, "wide, with little room": {1, 12_000, 5000},
	} {
		inside := t.TempDir()
		path := inside
		for range c.depth {
			path = filepath.Join(path, "m")
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
			for i := range c.entries {
				if err := os.Symlink("x", filepath.Join(path, fmt.Sprintf("%c%d", 'a'+i%26, i))); err != nil {
					t.Fatal(err)
				}
			}
		}
		disk := openedDisk(t, inside).volume.(*Disk)
		there := c.depth * (c.entries + 1)
		for work, do := range map[string]func(f *folder) (met int, err error){
			"walk": func(f *folder) (met int, err error) {
				w := walk{op: &op{files: f, ctx: t.Context()}, held: 4 * walkPage}
				return met, w.run("", "", func(string, []dirent) error { met++; return nil })
			},
			"copy": func(f *folder) (met int, err error) {
				f.held = 4 * walkPage
				var each func(path string) error
				each = func(path string) error {
					return f.each(path, func(e Entry) error {
						met++
						if e.Status.Kind == KindDirectory {
							return each(path + "/" + e.Name)
						}
						return nil
					})
				}
				return met, each("")
			},
		} {
			f := &folder{ctx: t.Context(), disk: disk, root: disk.root, ahead: c.ahead}
			if met, err := do(f); err != nil || met != there || f.read > 5*there {
				t.Errorf("%s, %s: met %d of %d, %v; %d names were read", name, work, met, there, err, f.read)
			} else {
				t.Logf("%s, %s: %d entries, %d names were read", name, work, met, f.read)
			}
		}
	}
}

// metered counts bytes.
type metered struct{ bytes int64 }

func (m *metered) Charge(n int64) error {
	m.bytes += n
	return nil
}

// TestFilesThatGrow reads files on disk that have more bytes than when they were looked up. They are charged, and have no more room than was
// made for them.
func TestFilesThatGrow(t *testing.T) {
	base := t.TempDir()
	d := openedDisk(t, base)
	const size = 100_000
	if err := os.WriteFile(filepath.Join(base, "f"), []byte(strings.Repeat("a", size)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, then := range []uint64{0, 1000, size - 1, size} {
		for name, read := range map[string]func(f openFile, room int64) (int, error){
			"text": func(f openFile, room int64) (int, error) {
				text, err := f.text(room)
				return len(text), err
			},
			"whole": func(f openFile, room int64) (int, error) {
				w, err := f.whole(abi.MaxText, room)
				if err != nil {
					return 0, err
				}
				return len(*w.Text), nil
			},
		} {
			for _, room := range []int64{16 << 10, size} {
				m := &metered{}
				err := d.view(abi.WithMeter(t.Context(), m), "read", func(o *op) error {
					place, n, err := o.file("/f")
					if err != nil {
						return err
					}
					n.status.Size = then
					have, err := read(openFile{o, place, "/f", n}, room)
					if err == nil && have != size {
						t.Errorf("%s: %d bytes", name, have)
					}
					return err
				})
				if fits := room >= size; fits && (err != nil || m.bytes != size) || !fits && !errors.Is(err, errGrown) {
					t.Errorf("%s, %d bytes before, room for %d: %d were charged, %v", name, then, room, m.bytes, err)
				}
			}
		}
	}
}
