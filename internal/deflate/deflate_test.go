package deflate

import (
	"bytes"
	stdflate "compress/flate"
	stdgzip "compress/gzip"
	stdzlib "compress/zlib"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// samples are inputs that compress in different ways.
func samples() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 600_000)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	letters := make([]byte, 300_000)
	for i := range letters {
		letters[i] = "abcd"[r.IntN(4)]
	}
	return map[string][]byte{
		"nothing": {}, "a byte": {7}, "text": []byte(strings.Repeat("the quick brown fox jumps over the lazy dog. ", 9000)), "zeros": make([]byte, 1<<20),
		"random": random, "letters": letters, "both": append(append([]byte(nil), letters...), random[:70_000]...),
	}
}

// compress compresses in pieces of at most size bytes.
func compress(t testing.TB, format Format, level int, data []byte, size int) []byte {
	t.Helper()
	w, err := NewWriter(format, level)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	var all []byte
	step := func(input []byte, flush Flush) {
		for {
			output, more, err := w.Step(input, flush)
			if err != nil {
				t.Fatal(err)
			}
			if len(output) > Piece {
				t.Fatalf("%d bytes at once", len(output))
			}
			if all = append(all, output...); !more {
				return
			}
			input = nil
		}
	}
	for len(data) > 0 {
		n := min(size, len(data))
		step(data[:n], NoFlush)
		data = data[n:]
	}
	step(nil, Finish)
	return all
}

// decompress decompresses in pieces of at most size bytes. It returns what came before an error, whether the end was reached, and what
// followed it.
func decompress(t testing.TB, format Format, data []byte, size int) (all []byte, ended bool, rest []byte, err error) {
	t.Helper()
	r := NewReader(format)
	defer func() { _ = r.Close() }()
	for len(data) > 0 {
		input := data[:min(size, len(data))]
		data = data[len(input):]
		for given, more := input, true; more; given = nil {
			var left int
			more, ended, left, err = r.Step(given, func(output []byte) {
				if len(output) > Piece {
					t.Fatalf("%d bytes at once", len(output))
				}
				all = append(all, output...)
			})
			if err != nil {
				return all, false, nil, err
			}
			if ended {
				return all, true, append(append([]byte(nil), input[len(input)-left:]...), data...), nil
			}
		}
	}
	return all, false, nil, nil
}

func standard(format Format, data []byte) (io.Reader, error) {
	switch format {
	case Gzip:
		r, err := stdgzip.NewReader(bytes.NewReader(data))
		if err == nil {
			r.Multistream(false)
		}
		return r, err
	case Zlib:
		return stdzlib.NewReader(bytes.NewReader(data))
	default:
		return stdflate.NewReader(bytes.NewReader(data)), nil
	}
}

func TestRoundTrip(t *testing.T) {
	for name, data := range samples() {
		for format := Gzip; format <= Raw; format++ {
			for _, c := range []struct{ level, size int }{{6, Piece}, {0, Piece}, {1, 1000}, {9, Piece}, {4, 7777}} {
				packed := compress(t, format, c.level, data, c.size)
				r, err := standard(format, packed)
				if err != nil {
					t.Fatalf("%s, format %d, level %d: %v", name, format, c.level, err)
				}
				if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%s, format %d, level %d: compress/flate reads %d bytes, %v", name, format, c.level, len(got), err)
				}
				if got, ended, rest, err := decompress(t, format, append(packed, "tail"...), c.size); err != nil || !ended || string(rest) != "tail" || !bytes.Equal(got, data) {
					t.Errorf("%s, format %d, level %d: %d bytes, %t, %q, %v", name, format, c.level, len(got), ended, rest, err)
				}
			}
		}
	}
}

// Input may end anywhere, and output does not depend on where.
func TestAnyPieces(t *testing.T) {
	data := append(bytes.Repeat([]byte("abcabcabd"), 200), samples()["random"][:5000]...)
	for format := Gzip; format <= Raw; format++ {
		for _, level := range []int{0, 1, 6} {
			packed := compress(t, format, level, data, Piece)
			for _, size := range []int{1, 2, 3, 5, 17, 100} {
				if got, ended, rest, err := decompress(t, format, append(packed, 1, 2, 3), size); err != nil || !ended || len(rest) != 3 || !bytes.Equal(got, data) {
					t.Fatalf("format %d, level %d, %d at a time: %d bytes, %t, %d left, %v", format, level, size, len(got), ended, len(rest), err)
				}
			}
			for cut := range len(packed) {
				if got, ended, _, err := decompress(t, format, packed[:cut], 1000); ended || err != nil || !bytes.HasPrefix(data, got) {
					t.Fatalf("format %d, level %d, cut at %d: %d bytes, %t, %v", format, level, cut, len(got), ended, err)
				}
			}
		}
	}
}

func TestSyncFlush(t *testing.T) {
	w, err := NewWriter(Zlib, 6)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(Zlib)
	for i := range 20 {
		text := fmt.Sprintf("line %d", i)
		packed, more, err := w.Step([]byte(text), SyncFlush)
		if err != nil || more {
			t.Fatal(more, err)
		}
		var got string
		if _, _, _, err := r.Step(packed, func(output []byte) { got = string(output) }); err != nil || got != text {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

func TestHeaders(t *testing.T) {
	var b bytes.Buffer
	w := stdgzip.NewWriter(&b)
	w.Name, w.Comment, w.Extra = "name", "comment", []byte("extra")
	_, _ = w.Write([]byte("content"))
	_ = w.Close()
	for _, size := range []int{1, 3, 1000} {
		if got, ended, _, err := decompress(t, Gzip, b.Bytes(), size); err != nil || !ended || string(got) != "content" {
			t.Errorf("%d at a time: %q, %t, %v", size, got, ended, err)
		}
	}
}

func TestWrongData(t *testing.T) {
	gz, z := compress(t, Gzip, 6, []byte("some text, some text"), Piece), compress(t, Zlib, 6, []byte("some text, some text"), Piece)
	with := func(data []byte, at int, b byte) []byte {
		data = append([]byte(nil), data...)
		if at < 0 {
			at += len(data)
		}
		data[at] = b
		return data
	}
	for _, c := range []struct {
		name   string
		format Format
		data   []byte
		want   DataError
	}{
		{"no gzip", Gzip, []byte("hello"), "incorrect header check"},
		{"zlib for gzip", Gzip, z, "incorrect header check"},
		{"gzip for zlib", Zlib, gz, "incorrect header check"},
		{"another method", Gzip, with(gz, 2, 9), "unknown compression method"},
		{"flags of gzip", Gzip, with(gz, 3, 0x80), "unknown header flags set"},
		{"a header's checksum", Gzip, append([]byte{0x1f, 0x8b, 8, 2, 0, 0, 0, 0, 0, 3, 0, 0}, gz[10:]...), "header crc mismatch"},
		{"a dictionary", Zlib, []byte{0x78, 0xbb, 0, 0, 0, 0}, "a dictionary is needed, which is not supported"},
		{"a large window", Zlib, []byte{0x88, 0x1c}, "invalid window size"},
		{"checksum of gzip", Gzip, with(gz, -8, ^gz[len(gz)-8]), "incorrect data check"},
		{"size of gzip", Gzip, with(gz, -1, 9), "incorrect length check"},
		{"checksum of zlib", Zlib, with(z, -1, ^z[len(z)-1]), "incorrect data check"},
		{"block type", Raw, []byte{7}, "invalid block type"},
		{"a stored block", Raw, []byte{1, 1, 0, 1, 0}, "invalid stored block lengths"},
		{"symbols", Raw, []byte{0xfd, 0xff, 0xff}, "too many length or distance symbols"},
		{"far back", Raw, []byte{0x03, 0x02, 0x00}, "invalid distance too far back"},
		{"lengths", Raw, []byte{4, 0, 0xfe, 0xff, 0, 0}, "invalid code lengths set"},
	} {
		got, ended, _, err := decompress(t, c.format, c.data, 1000)
		var wrong DataError
		if ended || !errors.As(err, &wrong) || wrong != c.want {
			t.Errorf("%s: %q, %t, %v; want %s", c.name, got, ended, err, c.want)
		}
	}
}

func TestMisuse(t *testing.T) {
	if _, err := NewWriter(Gzip, 10); err == nil {
		t.Error("there is a level 10")
	}
	w, _ := NewWriter(Raw, 0)
	if _, _, err := w.Step(make([]byte, Piece+1), NoFlush); !errors.Is(err, ErrTooMuch) {
		t.Error(err)
	}
	if _, more, err := w.Step(make([]byte, Piece), Finish); !more || err != nil {
		t.Error(more, err)
	}
	if _, _, err := w.Step([]byte{1}, NoFlush); !errors.Is(err, ErrPending) {
		t.Error(err)
	}
	if _, more, err := w.Step(nil, Finish); more || err != nil {
		t.Error(more, err)
	}
	if _, _, err := w.Step([]byte{1}, NoFlush); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if output, more, err := w.Step(nil, Finish); len(output) > 0 || more || err != nil {
		t.Error(len(output), more, err)
	}
	_ = w.Close()
	_ = w.Close()
	if _, _, err := w.Step(nil, Finish); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}

	r := NewReader(Raw)
	packed := compress(t, Raw, 6, make([]byte, 2*Piece), Piece)
	if more, _, _, err := r.Step(packed, func([]byte) {}); !more || err != nil {
		t.Error(more, err)
	}
	if _, _, _, err := r.Step(packed, func([]byte) {}); !errors.Is(err, ErrPending) {
		t.Error(err)
	}
	if _, _, _, err := r.Step(make([]byte, Piece+1), func([]byte) {}); !errors.Is(err, ErrTooMuch) {
		t.Error(err)
	}
	_ = r.Close()
	if _, _, _, err := r.Step(nil, func([]byte) {}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// Level 9 of the compressor can take seconds for a step, so it is not used.
func TestMostEffort(t *testing.T) {
	data := samples()["both"]
	if !bytes.Equal(compress(t, Raw, 9, data, Piece), compress(t, Raw, 8, data, Piece)) {
		t.Error("level 9 is not level 8")
	}
}

// What compress/flate reads, a Reader reads alike, however the input comes.
func TestAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.ByteRange(0, byte(rapid.IntRange(0, 255).Draw(t, "letters"))), 0, 5000).Draw(t, "data")
		format, level := Format(rapid.IntRange(0, 2).Draw(t, "format")), rapid.IntRange(0, 9).Draw(t, "level")
		w, err := NewWriter(format, level)
		if err != nil {
			t.Fatal(err)
		}
		packed, more, err := w.Step(data, Finish)
		if more || err != nil {
			t.Fatal(more, err)
		}
		packed = append([]byte(nil), packed...)
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			packed[rapid.IntRange(0, len(packed)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		}
		agree(t, format, packed, rapid.IntRange(1, 6000).Draw(t, "size"))
	})
}

type fataler interface {
	Fatalf(format string, args ...any)
}

// agree compares a Reader with compress/flate.
func agree(t fataler, format Format, packed []byte, size int) {
	want, wantErr := []byte(nil), error(nil)
	r, wantErr := standard(format, packed)
	if wantErr == nil {
		want, wantErr = io.ReadAll(io.LimitReader(r, 10<<20))
	}
	d := NewReader(format)
	var got []byte
	var ended bool
	var err error
	for at := 0; at < len(packed) && err == nil && !ended && len(got) < 10<<20; at += size {
		for input, more := packed[at:min(at+size, len(packed))], true; more && err == nil; input = nil {
			more, ended, _, err = d.Step(input, func(output []byte) { got = append(got, output...) })
		}
	}
	if len(got) >= 10<<20 || errors.Is(err, DataError("unknown header flags set")) { // which compress/gzip leaves alone
		return
	}
	if ok := err == nil && ended; ok != (wantErr == nil) || ok && !bytes.Equal(got, want) {
		t.Fatalf("format %d: %d bytes, %t, %v; compress/flate: %d bytes, %v", format, len(got), ended, err, len(want), wantErr)
	}
}

func FuzzReader(f *testing.F) {
	for _, data := range samples() {
		data = data[:min(len(data), 3000)]
		for format := Gzip; format <= Raw; format++ {
			f.Add(uint8(format), uint16(100), compress(f, format, 6, data, Piece))
			f.Add(uint8(format), uint16(1), compress(f, format, 0, data, Piece))
		}
	}
	f.Fuzz(func(t *testing.T, format uint8, size uint16, packed []byte) {
		if len(packed) > Piece {
			return
		}
		agree(t, Format(format%3), packed, int(size)+1)
	})
}
