package pack_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/stilehost/stile/extension/pack"
)

func TestWriteRead(t *testing.T) {
	small := &pack.Pack{Manifest: []byte("{}"), Files: map[string][]byte{"a.ts": nil}, Entry: "a.ts", Component: []byte("c")}
	signatures := []pack.Signature{pack.Signature(`{"a":1}`), pack.Signature(`{"b":2}`)}
	for name, p := range map[string]*pack.Pack{"every part": sample(), "few parts": small} {
		t.Run(name, func(t *testing.T) {
			b := written(t, p, signatures...)
			if !bytes.Equal(b, written(t, p, signatures...)) {
				t.Error("two writings differ")
			}
			got, s, err := pack.Read(iotest.OneByteReader(bytes.NewReader(b)), pack.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if !equal(got, p) || digest(t, got) != digest(t, p) {
				t.Errorf("got %+v", got)
			}
			if !slices.EqualFunc(s, signatures, func(a, b pack.Signature) bool { return bytes.Equal(a, b) }) {
				t.Errorf("got signatures %q", s)
			}
		})
	}
}

// TestBytesStay fails if files that were written before could no longer be read.
func TestBytesStay(t *testing.T) {
	const want = "74ff31824639d0891fcd4a40f406e348172158180b12fb034e077c71204591e9"
	if got := fmt.Sprintf("%x", sha256.Sum256(written(t, sample(), pack.Signature("{}")))); got != want {
		t.Errorf("the bytes of the sample have the digest %s, and had %s", got, want)
	}
}

func TestWriteFails(t *testing.T) {
	if err := pack.Write(failing{}, sample()); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestReadTruncated reads every prefix of a file, in steps.
func TestReadTruncated(t *testing.T) {
	b := written(t, sample())
	end := len(bytes.TrimRight(b, "\x00")) // zeros pad the last entry and end the archive
	for n := 0; n < end; n += 100 {
		if _, _, err := pack.Read(bytes.NewReader(b[:n]), pack.Limits{}); err == nil {
			t.Fatalf("%d of %d bytes were read as a pack", n, len(b))
		} else if _, ok := errors.AsType[*pack.PartError](err); !ok {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

// TestReadFlipped flips one bit in each 64 bytes. It is detected or has no effect.
func TestReadFlipped(t *testing.T) {
	p := sample()
	b := written(t, p)
	for i := 0; i < len(b); i += 61 {
		flipped := bytes.Clone(b)
		flipped[i] ^= 1 << (i % 8)
		got, _, err := pack.Read(bytes.NewReader(flipped), pack.Limits{})
		if err == nil && !equal(got, p) {
			t.Fatalf("byte %d: another pack was read", i)
		}
	}
}

func TestReaderFails(t *testing.T) {
	_, _, err := pack.Read(io.MultiReader(bytes.NewReader(written(t, sample())[:2000]), iotest.ErrReader(io.ErrClosedPipe)), pack.Limits{})
	refused(t, err, "layout", io.ErrClosedPipe)
}

func TestReadHostileArchive(t *testing.T) {
	good := entries(t, written(t, sample()))
	add := func(h tar.Header, content string) []entry {
		return append(slices.Clone(good), entry{h, []byte(content)})
	}
	first := good[2].Name // a blob
	for _, c := range []struct {
		name string
		file []byte
		part string
		want error
	}{
		{"nothing", nil, `layout entry "oci-layout"`, pack.ErrMissing},
		{"not tar", bytes.Repeat([]byte("x"), 2000), "layout", pack.ErrFormat},
		{"more after the end", append(written(t, sample()), "more"...), "layout", pack.ErrFormat},
		{"zeros without end", append(written(t, sample()), make([]byte, 1<<20)...), "layout", pack.ErrFormat},
		{"an entry twice", archive(t, add(tar.Header{Typeflag: tar.TypeReg, Name: first}, "")), `layout entry "` + first + `"`, pack.ErrDuplicate},
		{"an entry of another name", archive(t, add(tar.Header{Typeflag: tar.TypeReg, Name: "README"}, "")), `layout entry "README"`, pack.ErrFormat},
		{"a blob of no use", archive(t, add(tar.Header{Typeflag: tar.TypeReg, Name: "blobs/sha256/" + strings.Repeat("0", 64)}, "x")), `layout entry "blobs/sha256/` + strings.Repeat("0", 64) + `"`, pack.ErrFormat},
		{"a path up", archive(t, add(tar.Header{Typeflag: tar.TypeReg, Name: "../../etc/passwd"}, "")), `layout entry "../../etc/passwd"`, pack.ErrName},
		{"an absolute path", archive(t, add(tar.Header{Typeflag: tar.TypeReg, Name: "/etc/passwd"}, "")), `layout entry "/etc/passwd"`, pack.ErrName},
		{"a symbolic link", archive(t, add(tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/etc/passwd"}, "")), `layout entry "a"`, pack.ErrFormat},
		{"a hard link", archive(t, add(tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: first}, "")), `layout entry "a"`, pack.ErrFormat},
		{"a device", archive(t, add(tar.Header{Typeflag: tar.TypeChar, Name: "a"}, "")), `layout entry "a"`, pack.ErrFormat},
		{"many entries", archive(t, slices.Repeat(add(tar.Header{Typeflag: tar.TypeDir, Name: "d/"}, ""), 10)[len(good):]), `layout entry "oci-layout"`, pack.ErrDuplicate},
		{"many folders", archive(t, slices.Repeat([]entry{{tar.Header{Typeflag: tar.TypeDir, Name: "d/"}, nil}}, 100)), "layout", pack.ErrTooLarge},
		{"a size that is not there", huge(t), `layout entry "a"`, pack.ErrTooLarge},
		{"no index", archive(t, slices.Delete(slices.Clone(good), 1, 2)), `layout entry "index.json"`, pack.ErrMissing},
		{"no version", archive(t, slices.Delete(slices.Clone(good), 0, 1)), `layout entry "oci-layout"`, pack.ErrMissing},
		{"another version", archive(t, with(good, 0, `{"imageLayoutVersion":"2.0.0"}`)), "layout", pack.ErrFormat},
		{"an index that is no JSON", archive(t, with(good, 1, `{`)), `layout entry "index.json"`, pack.ErrFormat},
		{"an index that is huge", archive(t, with(good, 1, strings.Repeat(" ", 1<<20))), `layout entry "index.json"`, pack.ErrTooLarge},
		{"an empty index", archive(t, with(good, 1, `{"schemaVersion":2}`)), "artifact", pack.ErrMissing},
		{"an index of many", archive(t, with(good, 1, `{"schemaVersion":2,"manifests":[`+strings.Repeat("{},", 17)+`{}]}`)), "layout", pack.ErrTooLarge},
		{"a digest that is a path", archive(t, with(good, 1, `{"schemaVersion":2,"manifests":[{"digest":"sha256:../../oci-layout","size":30}]}`)), "artifact", pack.ErrFormat},
		{"a digest of another kind", archive(t, with(good, 1, `{"schemaVersion":2,"manifests":[{"digest":"sha512:`+strings.Repeat("0", 128)+`"}]}`)), "artifact", pack.ErrFormat},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := pack.Read(bytes.NewReader(c.file), pack.Limits{})
			refused(t, err, c.part, c.want)
		})
	}
}

// TestReadLayoutOfOthers reads the artifact as other programs write it: with folders, another order and padding.
func TestReadLayoutOfOthers(t *testing.T) {
	all := entries(t, written(t, sample(), pack.Signature("{}")))
	slices.Reverse(all)
	all = append([]entry{{tar.Header{Typeflag: tar.TypeDir, Name: "blobs/"}, nil}, {tar.Header{Typeflag: tar.TypeDir, Name: "blobs/sha256/"}, nil}}, all...)
	p, s, err := pack.Read(bytes.NewReader(append(archive(t, all), make([]byte, 10<<10)...)), pack.Limits{})
	if err != nil || !equal(p, sample()) || len(s) != 1 {
		t.Errorf("got %v, %q, %v", p, s, err)
	}
}

func TestReadLimits(t *testing.T) {
	b := written(t, sample(), pack.Signature("{}"), pack.Signature("[]"))
	for _, c := range []struct {
		limits pack.Limits
		part   string
	}{
		{pack.Limits{Component: 5}, "component"},
		{pack.Limits{Part: 5}, "config"},
		{pack.Limits{Source: 5}, `source entry "tool.ts"`},
		{pack.Limits{Files: 2}, "source"},
		{pack.Limits{Signatures: 1}, "layout"},
	} {
		_, _, err := pack.Read(bytes.NewReader(b), c.limits)
		refused(t, err, c.part, pack.ErrTooLarge)
	}
}

// TestReadEndless reads a file that never ends, with headers that tar itself would keep reading.
func TestReadEndless(t *testing.T) {
	for name, block := range map[string][]byte{
		"headers for the next header": archive(t, []entry{{tar.Header{Typeflag: tar.TypeReg, Name: "größe"}, nil}})[:1024],
		"zeros":                       make([]byte, 512),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := pack.Read(&endless{block, 0}, pack.Limits{Component: 1 << 20})
			if _, ok := errors.AsType[*pack.PartError](err); !ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

type endless struct {
	block []byte
	at    int
}

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.block[e.at:])
	e.at = (e.at + n) % len(e.block)
	return n, nil
}

type entry struct {
	tar.Header
	content []byte
}

func written(t testing.TB, p *pack.Pack, signatures ...pack.Signature) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := pack.Write(&b, p, signatures...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func entries(t *testing.T, file []byte) []entry {
	t.Helper()
	var all []entry
	r := tar.NewReader(bytes.NewReader(file))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry{*h, content})
	}
}

func archive(t *testing.T, all []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range all {
		e.Size = int64(len(e.content))
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func with(all []entry, i int, content string) []entry {
	all = slices.Clone(all)
	all[i].content = []byte(content)
	return all
}

// huge claims to have a terabyte, and has no content.
func huge(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// layoutOf writes blobs as a layout whose index leads to manifests.
func layoutOf(t *testing.T, blobs map[godigest.Digest][]byte, manifests ...[]byte) []byte {
	t.Helper()
	index := ocispec.Index{}
	index.SchemaVersion = 2
	all := []entry{{tar.Header{Name: "oci-layout"}, []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {}}
	for _, m := range manifests {
		blobs[godigest.FromBytes(m)] = m
		index.Manifests = append(index.Manifests, ocispec.Descriptor{Digest: godigest.FromBytes(m), Size: int64(len(m))})
	}
	for d, b := range blobs {
		all = append(all, entry{tar.Header{Name: "blobs/sha256/" + d.Encoded()}, b})
	}
	b, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	all[1] = entry{tar.Header{Name: "index.json"}, b}
	return archive(t, all)
}

func FuzzRead(f *testing.F) {
	b := written(f, sample(), pack.Signature("{}"))
	f.Add(b)
	f.Add(b[:3000])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, s, err := pack.Read(bytes.NewReader(b), pack.Limits{Component: 1 << 20, Source: 1 << 20, Part: 1 << 20})
		if err != nil {
			if _, ok := errors.AsType[*pack.PartError](err); !ok {
				t.Errorf("%v", err)
			}
			return
		}
		again, _, err := pack.Read(bytes.NewReader(written(t, p, s...)), pack.Limits{})
		if err != nil || !equal(p, again) {
			t.Errorf("what was read is not what is read again: %v", err)
		}
	})
}
