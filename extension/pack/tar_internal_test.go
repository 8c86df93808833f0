package pack

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"testing"
)

// FuzzSource reads archives whose checksums are put right, so that what stands behind them is reached.
func FuzzSource(f *testing.F) {
	good, err := writeTar(map[string][]byte{"a.ts": []byte("a"), "größe/b.ts": nil})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "a/"},
		{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "b"},
		{Typeflag: tar.TypeReg, Name: "a", PAXRecords: map[string]string{"SCHILY.xattr.a": "b"}},
		{Typeflag: tar.TypeReg, Name: string(bytes.Repeat([]byte("n"), 300)), Format: tar.FormatGNU},
		{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"path": "b"}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := errors.Join(w.WriteHeader(&h), w.Close()); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		for block := b; len(block) >= 512; block = block[512:] {
			if bytes.HasPrefix(block[257:], []byte("ustar")) {
				checksum(block)
			}
		}
		limits := Limits{Source: 1 << 20, Files: 100}.WithDefaults()
		files, err := readSource(b, limits)
		if _, ok := errors.AsType[*PartError](err); err != nil && !ok {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		for name := range files {
			if err := checkPath(name); err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		if again, err := writeTar(files); err != nil || !bytes.Equal(again, b) {
			t.Errorf("what was read is not what is written: %v", err)
		}
	})
}

// checksum puts right the checksum of a header.
func checksum(block []byte) {
	copy(block[148:156], "        ")
	var sum int
	for _, c := range block[:512] {
		sum += int(c)
	}
	copy(block[148:156], fmt.Sprintf("%06o\x00 ", sum))
}
