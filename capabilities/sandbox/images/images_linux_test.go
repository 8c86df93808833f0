package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

type entry struct {
	name string
	kind byte
	mode int64
	text string // content, or the target of a link
}

// layer packs entries.
func layer(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: e.mode, Uid: 0}
		if e.kind == tar.TypeReg {
			h.Size = int64(len(e.text))
		} else {
			h.Linkname = e.text
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if e.kind == tar.TypeReg {
			if _, err := w.Write([]byte(e.text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// layout writes an OCI image layout with these layers.
func layout(t *testing.T, layers ...[]byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(mediaType string, data []byte) v1.Descriptor {
		sum := sha256.Sum256(data)
		name := hex.EncodeToString(sum[:])
		if err := os.WriteFile(filepath.Join(dir, "blobs", "sha256", name), data, 0o644); err != nil {
			t.Fatal(err)
		}
		return v1.Descriptor{MediaType: mediaType, Digest: digest.NewDigestFromEncoded(digest.SHA256, name), Size: int64(len(data))}
	}
	text := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	config := put(v1.MediaTypeImageConfig, text(v1.Image{Config: v1.ImageConfig{Env: []string{"PATH=/opt/bin:/bin", "A=b", "HOME=/evil", "broken"}}}))
	m := v1.Manifest{Config: config}
	for _, l := range layers {
		m.Layers = append(m.Layers, put(v1.MediaTypeImageLayerGzip, l))
	}
	index := v1.Index{Manifests: []v1.Descriptor{put(v1.MediaTypeImageManifest, text(m))}}
	if err := os.WriteFile(filepath.Join(dir, "index.json"), text(index), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFromOCI applies layers with whiteouts and links.
func TestFromOCI(t *testing.T) {
	source := layout(t,
		layer(t, entry{"bin", tar.TypeSymlink, 0o777, "/usr/bin"}, entry{"usr/bin/a", tar.TypeReg, 0o700, "a"}, entry{"d/x", tar.TypeReg, 0o600, "x"}, entry{"d/y", tar.TypeReg, 0o644, "y"},
			entry{"gone/z", tar.TypeReg, 0o644, "z"}, entry{"o/old", tar.TypeReg, 0o644, "old"}, entry{"tmp", tar.TypeSymlink, 0o777, "/etc"}),
		layer(t, entry{"bin/b", tar.TypeReg, 0o755, "b"}, entry{"d/.wh.x", tar.TypeReg, 0, ""}, entry{".wh.gone", tar.TypeReg, 0, ""}, entry{"o/new", tar.TypeReg, 0o644, "new"},
			entry{"o/.wh..wh..opq", tar.TypeReg, 0, ""}, entry{"hard", tar.TypeLink, 0, "d/y"}),
	)
	for _, archive := range []bool{false, true} {
		dir, from := t.TempDir(), source
		if archive {
			from = filepath.Join(t.TempDir(), "layout.tar")
			file, err := os.Create(from)
			if err != nil {
				t.Fatal(err)
			}
			w := tar.NewWriter(file)
			if err := w.AddFS(os.DirFS(source)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			file.Close()
		}
		i, err := FromOCI(t.Context(), dir, "x", from, "")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(i.Env, " ") != "PATH=/opt/bin:/bin A=b" || !strings.HasPrefix(i.Digest, "sha256:") {
			t.Errorf("%+v", i)
		}
		root := filepath.Join(dir, "x", "root")
		for name, want := range map[string]string{"usr/bin/a": "a", "usr/bin/b": "b", "d/y": "y", "hard": "y", "o/new": "new"} {
			if text, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(text) != want {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
		for _, name := range []string{"d/x", "gone", "o/old"} {
			if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
				t.Errorf("%s is there", name)
			}
		}
		for name, want := range map[string]os.FileMode{"usr/bin/a": 0o705, "tmp": os.ModeDir | 0o755, "work": os.ModeDir | 0o755, "var/tmp": os.ModeDir | 0o755} {
			if info, err := os.Lstat(filepath.Join(root, name)); err != nil || info.Mode() != want {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
		all, err := List(dir)
		if err != nil || len(all) != 1 || all[0].Name != "x" || all[0].Bytes != 5 && all[0].Bytes != 7 {
			t.Errorf("%+v, %v", all, err)
		}
		if err := Remove(dir, "x"); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != ".lock" {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

// TestHostileLayers has layers that write outside of the image, or put something dangerous into it.
func TestHostileLayers(t *testing.T) {
	outside := t.TempDir()
	for _, name := range []string{"keep", "folder/x"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(outside, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(outside, name), []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	up := strings.Repeat("../", 20) + strings.TrimPrefix(outside, "/")
	source := layout(t, layer(t,
		entry{up + "/written", tar.TypeReg, 0o644, "x"}, entry{"/" + up + "/written", tar.TypeReg, 0o644, "x"}, entry{outside + "/written", tar.TypeReg, 0o644, "x"},
		entry{"out", tar.TypeSymlink, 0, outside}, entry{"out/written", tar.TypeReg, 0o644, "x"}, entry{"out/.wh.keep", tar.TypeReg, 0, ""}, entry{"out/folder/.wh..wh..opq", tar.TypeReg, 0, ""},
		entry{"rel", tar.TypeSymlink, 0, up}, entry{"rel/written", tar.TypeReg, 0o644, "x"}, entry{".wh.out", tar.TypeReg, 0, ""},
		entry{"setuid", tar.TypeReg, 0o6755, "x"}, entry{"null", tar.TypeChar, 0o666, ""}, entry{"sda", tar.TypeBlock, 0o666, ""}, entry{"pipe", tar.TypeFifo, 0o666, ""},
		entry{"sticky", tar.TypeDir, 0o1777, ""}, entry{"closed", tar.TypeDir, 0o000, ""}, entry{"work", tar.TypeSymlink, 0, outside}, entry{"var", tar.TypeSymlink, 0, outside},
	))
	dir := t.TempDir()
	if _, err := FromOCI(t.Context(), dir, "x", source, ""); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(outside)
	if err != nil || len(left) != 2 {
		t.Errorf("outside: %v, %v", left, err)
	}
	for _, name := range []string{"keep", "folder/x"} {
		if text, err := os.ReadFile(filepath.Join(outside, name)); err != nil || string(text) != "mine" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	root := filepath.Join(dir, "x", "root")
	for name, want := range map[string]os.FileMode{"setuid": 0o755, "sticky": os.ModeDir | 0o755, "closed": os.ModeDir | 0o755, "work": os.ModeDir | 0o755, "var": os.ModeDir | 0o755} {
		if info, err := os.Lstat(filepath.Join(root, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	for _, name := range []string{"null", "sda", "pipe", "out"} {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}

	for name, source := range map[string]string{
		"a link to outside":  layout(t, layer(t, entry{"a", tar.TypeLink, 0, outside + "/keep"})),
		"a link to a magic":  layout(t, layer(t, entry{"m", tar.TypeSymlink, 0, "/proc/self/root"}, entry{"a", tar.TypeLink, 0, "m/etc/passwd"})),
		"below a magic link": layout(t, layer(t, entry{"magic", tar.TypeSymlink, 0, "/proc/self/root" + outside}, entry{"magic/written", tar.TypeReg, 0o644, "x"})),
		"a whiteout of all":  layout(t, layer(t, entry{".wh...", tar.TypeReg, 0, ""})),
		"no layer":           layout(t, []byte("text")),
		"a file as a folder": layout(t, layer(t, entry{"a", tar.TypeReg, 0o644, "x"}, entry{"a/b", tar.TypeReg, 0o644, "x"})),
		"a long path":        layout(t, layer(t, entry{strings.Repeat("a/", 3000) + "b", tar.TypeReg, 0o644, "x"})),
		"nothing":            t.TempDir(),
	} {
		if i, err := FromOCI(t.Context(), dir, "bad", source, ""); err == nil {
			t.Errorf("%s: %+v", name, i)
		}
	}
	blobs, err := filepath.Glob(filepath.Join(source, "blobs", "sha256", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs {
		old, err := os.ReadFile(b)
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Clone(old)
		changed[len(changed)/2] ^= 1
		if err := os.WriteFile(b, changed, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := FromOCI(t.Context(), dir, "bad", source, ""); err == nil {
			t.Errorf("a changed blob of %d bytes is accepted", len(old))
		}
		if err := os.WriteFile(b, old, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 || left[0].Name() != ".lock" {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestFromHost shows folders of this machine, but none with data that a sandbox must not see.
func TestFromHost(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	good, err := os.MkdirTemp("/opt", "stile-test-") //nolint:usetesting // folders of /tmp are never shown
	if err != nil {
		t.Fatalf("this test needs a folder that it may make in /opt: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(good) })
	if err := os.Mkdir(filepath.Join(good, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(good, "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	i, err := FromHost(dir, "x", []string{good}, []string{home})
	if err != nil || !strings.HasPrefix(i.Env[0], "PATH="+good+"/bin:") {
		t.Errorf("%+v, %v", i, err)
	}
	for _, bad := range []string{"/", "/etc", "/etc/ssl", "/proc", "/sys/kernel", "/dev", "/home", "/tmp", "/run", "/var", "/var/tmp/x", home, filepath.Dir(home), link, good + "/none", good + "/../x", "opt", good + "/bin/"} {
		if _, err := FromHost(dir, "bad", []string{bad}, []string{home}); err == nil {
			t.Errorf("%s is shown", bad)
		}
	}
	for _, name := range []string{"host", "", "A", "../x", ".x"} {
		if _, err := FromHost(dir, name, []string{good}, nil); err == nil {
			t.Errorf("%q is a name", name)
		}
	}
	if _, _, err := Open(dir, "x", []string{good}); err == nil { // what was allowed may have become private
		t.Error("a private folder is shown")
	}
}

// unpackWithin unpacks layers with bounds, and returns how it ended.
func unpackWithin(t *testing.T, u unpacker, layers ...[]byte) error {
	t.Helper()
	root, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	u.ctx, u.root, u.seed = t.Context(), root, maphash.MakeSeed()
	for _, l := range layers {
		if err := u.unpack(bytes.NewReader(l), v1.MediaTypeImageLayerGzip); err != nil {
			return err
		}
	}
	return nil
}

// TestBombs unpacks layers that are small and become large: as files, as what is skipped, as entries, and as folders that no entry names.
func TestBombs(t *testing.T) {
	large := unpacker{left: 1 << 20, stream: 4 << 20, entries: 1000}
	zeros := strings.Repeat("\x00", 1<<20)
	skipped := func() []byte { // content of an entry that has none
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		h := make([]byte, 512)
		copy(h, "skipped")
		copy(h[100:], "0000644\x00")
		copy(h[124:], "00100000000\x00") // 16 MiB
		h[156] = 'Z'
		copy(h[257:], "ustar\x0000")
		copy(h[148:], "        ")
		sum := 0
		for _, c := range h {
			sum += int(c)
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		_, _ = z.Write(h)
		_, _ = z.Write(make([]byte, 17<<20))
		_ = z.Close()
		return b.Bytes()
	}
	var many, deep, anew []entry
	for i := range 1001 {
		many = append(many, entry{fmt.Sprint("f", i), tar.TypeSymlink, 0, "x"})
		anew = append(anew, entry{"d/.wh..wh..opq", tar.TypeReg, 0, ""})
	}
	for i := range 10 {
		deep = append(deep, entry{fmt.Sprint("d", i, strings.Repeat("/d", 200)), tar.TypeDir, 0o755, ""})
	}
	for name, c := range map[string]struct {
		layers [][]byte
		want   string
	}{
		"what fits":               {[][]byte{layer(t, entry{"a", tar.TypeReg, 0o644, zeros})}, ""},
		"a file":                  {[][]byte{layer(t, entry{"a", tar.TypeReg, 0o644, zeros + "x"})}, "the image has more than"},
		"one file over and over":  {[][]byte{layer(t, entry{"a", tar.TypeReg, 0o644, zeros[1:]}, entry{"a", tar.TypeReg, 0o644, "xx"})}, "the image has more than"},
		"files in several layers": {[][]byte{layer(t, entry{"a", tar.TypeReg, 0o644, zeros}), layer(t, entry{"b", tar.TypeReg, 0o644, "x"})}, "the image has more than"},
		"content that is skipped": {[][]byte{skipped()}, "unpack to more than"},
		"entries":                 {[][]byte{layer(t, many...)}, "more than 4000000 entries"},
		"folders without entries": {[][]byte{layer(t, deep...)}, "more than 4000000 entries"},
		"folders begun anew":      {[][]byte{layer(t, anew...)}, "more than 4000000 entries"},
		"a deep folder":           {[][]byte{layer(t, entry{strings.Repeat("d/", 300), tar.TypeDir, 0o755, ""})}, "the path is too long"},
	} {
		err := unpackWithin(t, large, c.layers...)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// written is a source of one document.
type written string

// Blob implements [Source].
func (w written) Blob(context.Context, v1.Descriptor) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(string(w))), nil
}

// TestLongLists imports documents whose lists have a million entries, and compares what that takes with their texts.
func TestLongLists(t *testing.T) {
	for _, c := range []struct{ mediaType, before, item, after, want string }{
		{v1.MediaTypeImageIndex, `{"manifests":[`, `{},`, `{}]}`, "more than 4096 descriptors"},
		{v1.MediaTypeImageManifest, `{"layers":[`, `{},`, `{}]}`, "more than 4096 descriptors"},
		{v1.MediaTypeImageManifest, `{"layers":[],"manifests":[`, `{},`, `{}]}`, "more than 4096 descriptors"},
		{v1.MediaTypeImageIndex, `{"manifests":null}`, ``, ``, "no image for"},
		{v1.MediaTypeImageIndex, `{"manifests":{}}`, ``, ``, "a list of descriptors is no list"},
		{v1.MediaTypeImageIndex, `{"layers":[]}`, ``, ``, "is not what its media type"},
	} {
		text := c.before + strings.Repeat(c.item, (MaxDocument-len(c.before)-len(c.after))/3) + c.after
		d := v1.Descriptor{MediaType: c.mediaType, Digest: digest.FromString(text), Size: int64(len(text))}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Import(t.Context(), t.TempDir(), "x", Origin{Source: written(text), Roots: []v1.Descriptor{d}, Name: "x"})
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.300v", c.before, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 16*MaxDocument {
			t.Errorf("%s: a document of %d bytes takes %d", c.before, len(text), took)
		}
	}
}

// TestKilled has folders of an import that was killed, and of one that is still under way, beside an import.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".making-dead", "x", "root"), 0o700); err != nil {
		t.Fatal(err)
	}
	source := layout(t, layer(t, entry{"a", tar.TypeReg, 0o644, "a"}))
	err := scratch(dir, func(work string) error {
		if err := os.WriteFile(filepath.Join(work, "kept"), nil, 0o600); err != nil {
			return err
		}
		for range 2 { // the second one replaces the first
			if _, err := FromOCI(t.Context(), dir, "x", source, ""); err != nil {
				return err
			}
		}
		_, err := os.Stat(filepath.Join(work, "kept"))
		return err
	})
	if err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 || left[0].Name() != ".lock" || left[1].Name() != "x" {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestAtOnce has many imports of one name at once. Each leaves a whole image.
func TestAtOnce(t *testing.T) {
	dir, source := t.TempDir(), layout(t, layer(t, entry{"a", tar.TypeReg, 0o644, "a"}))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := FromOCI(t.Context(), dir, "x", source, ""); err != nil {
				t.Error(err)
			}
			if text, err := os.ReadFile(filepath.Join(dir, "x", "root", "a")); err != nil || string(text) != "a" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// FuzzLayer unpacks layers of any bytes. Nothing is written beside the folder.
func FuzzLayer(f *testing.F) {
	seed := func(entries ...entry) {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, e := range entries {
			h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: e.mode, Linkname: e.text}
			if e.kind == tar.TypeReg {
				h.Size, h.Linkname = int64(len(e.text)), ""
			}
			if err := w.WriteHeader(h); err != nil {
				f.Fatal(err)
			}
			if e.kind == tar.TypeReg {
				_, _ = w.Write([]byte(e.text)) // to memory
			}
		}
		_ = w.Close() // to memory
		f.Add(b.Bytes())
	}
	seed(entry{"a/b", tar.TypeReg, 0o644, "text"}, entry{"a/.wh.b", tar.TypeReg, 0, ""}, entry{"a/.wh..wh..opq", tar.TypeReg, 0, ""})
	seed(entry{"l", tar.TypeSymlink, 0, "../.."}, entry{"l/x", tar.TypeReg, 0o644, "x"}, entry{"h", tar.TypeLink, 0, "l/x"})
	seed(entry{"d", tar.TypeDir, 0o755, ""}, entry{"../../x", tar.TypeReg, 0o644, "x"}, entry{"p", tar.TypeFifo, 0o644, ""})
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		root, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		u := unpacker{ctx: t.Context(), root: root, left: 1 << 20, stream: 4 << 20, entries: 1000, seed: maphash.MakeSeed()}
		_ = u.unpack(bytes.NewReader(data), v1.MediaTypeImageLayer) // most are no archive
		if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) != 1 {
			t.Fatalf("beside it: %v, %v", left, err)
		}
		if _, err := settle(dir); err != nil {
			t.Fatal(err)
		}
	})
}
