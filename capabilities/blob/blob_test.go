package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/captest"
	"github.com/stilehost/stile/internal/wordtext"
	"github.com/stilehost/stile/wit"
)

func TestMatchesWIT(t *testing.T) {
	captest.Implements(t, wit.Capability(), Interface, nil, reflect.TypeFor[*Blob](), reflect.TypeFor[*Writer](), reflect.TypeFor[*Store]())
}

func TestBlob(t *testing.T) {
	data := bytes.Repeat([]byte("héllo "), 100)
	for name, memory := range map[string]int64{"in memory": 1 << 20, "in a file": 1, "at the limit": int64(len(data)), "above it": int64(len(data)) - 1} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			builder := NewBuilder(Options{MediaType: "text/plain", Memory: memory, Dir: dir})
			for chunk := range bytes.SplitAfterSeq(data, []byte("o")) {
				if n, err := builder.Write(chunk); err != nil || n != len(chunk) {
					t.Fatal(n, err)
				}
			}
			b, err := builder.Blob()
			if err != nil {
				t.Fatal(err)
			}
			wantEmpty(t, dir)
			if builder.Close() != nil || b.Size(t.Context()) != uint64(len(data)) || b.MediaType(t.Context()) != "text/plain" {
				t.Fatal("size or media type")
			}
			if want := fmt.Sprintf("sha256:%x", sha256.Sum256(data)); b.Digest(t.Context()) != want {
				t.Fatal(b.Digest(t.Context()))
			}
			if text, err := b.Text(t.Context(), uint64(len(data))); err != nil || text != string(data) {
				t.Fatal(text, err)
			}
			if _, err := b.Text(t.Context(), uint64(len(data))-1); !errors.Is(err, abi.ErrTooLarge) {
				t.Fatal(err)
			}
			if read, err := io.ReadAll(b.Reader()); err != nil || !bytes.Equal(read, data) {
				t.Fatal(err)
			}
			for _, r := range []struct {
				offset uint64
				n      uint32
				want   []byte
			}{
				{0, 3, data[:3]},
				{2, 5, data[2:7]},
				{uint64(len(data)) - 2, 10, data[len(data)-2:]},
				{uint64(len(data)), 10, []byte{}},
				{1 << 63, 10, []byte{}},
				{^uint64(0), abi.MaxBytes, []byte{}},
				{5, 0, []byte{}},
				{0, abi.MaxBytes, data},
			} {
				if have, err := b.Bytes(t.Context(), r.offset, r.n); err != nil || !bytes.Equal(have, r.want) || have == nil {
					t.Errorf("%d bytes at %d: %q, %v", r.n, r.offset, have, err)
				}
				text, err := b.Packed(t.Context(), r.offset, r.n)
				words := wordtext.Decode(nil, []byte(text))
				if err != nil || len(words) < 8 || binary.LittleEndian.Uint64(words) != uint64(len(r.want)) || !bytes.Equal(words[8:][:len(r.want)], r.want) {
					t.Errorf("%d bytes at %d, packed: %q, %v", r.n, r.offset, words, err)
				}
			}
			if _, err := b.Bytes(t.Context(), 0, abi.MaxBytes+1); !errors.Is(err, abi.ErrInvalid) {
				t.Fatal(err)
			}
			if _, err := b.Packed(t.Context(), 0, abi.MaxBytes+1); !errors.Is(err, abi.ErrInvalid) {
				t.Fatal(err)
			}
			if err := errors.Join(b.Close(), b.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Text(t.Context(), 1<<20); !errors.Is(err, abi.ErrInvalid) {
				t.Fatal(err)
			}
			if _, err := b.Bytes(t.Context(), 0, 1); !errors.Is(err, abi.ErrInvalid) {
				t.Fatal(err)
			}
		})
	}
}

// wantEmpty checks that no file is left where temporary files are made.
func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Fatal(entries, err)
	}
}

func TestTextHasToBeUTF8(t *testing.T) {
	for _, data := range []string{"\xff", "a\xc0\xaf", "\xed\xa0\x80", "é"[:1]} {
		if _, err := New("", []byte(data)).Text(t.Context(), 100); !errors.Is(err, abi.ErrInvalid) {
			t.Errorf("%q: %v", data, err)
		}
	}
	if text, err := New("", nil).Text(t.Context(), 0); err != nil || text != "" {
		t.Error(text, err)
	}
	large := New("", make([]byte, abi.MaxText+1))
	if _, err := large.Text(t.Context(), ^uint64(0)); !errors.Is(err, abi.ErrTooLarge) {
		t.Error(err)
	}
}

func TestBuilderLimits(t *testing.T) {
	quota := NewQuota("test", 10)
	dir := t.TempDir()
	for name, memory := range map[string]int64{"memory": 100, "file": 2} {
		t.Run(name, func(t *testing.T) {
			builder := NewBuilder(Options{Limit: 8, Memory: memory, Quota: quota, Dir: dir})
			write := func(text string, want error) {
				t.Helper()
				if n, err := builder.Write([]byte(text)); !errors.Is(err, want) || err == nil && n != len(text) || err != nil && n != 0 {
					t.Fatal(n, err)
				}
			}
			write("12345", nil)
			write("6789", abi.ErrTooLarge)
			if err := quota.Reserve(4); err != nil {
				t.Fatal(err)
			}
			write("678", abi.ErrExhausted)
			quota.Release(4)
			write("678", nil)
			write("", nil)
			b, err := builder.Blob()
			if err != nil {
				t.Fatal(err)
			}
			write("9", abi.ErrInvalid)
			if _, err := builder.Blob(); !errors.Is(err, abi.ErrInvalid) {
				t.Fatal(err)
			}
			if text, err := b.Text(t.Context(), 10); err != nil || text != "12345678" {
				t.Fatal(text, err)
			}
			if quota.Reserve(3) == nil {
				t.Fatal("the blob is not charged")
			}
			_ = b.Close()
			_ = b.Close()
			dropped := NewBuilder(Options{Memory: memory, Quota: quota, Dir: dir})
			_, _ = dropped.Write(make([]byte, 10))
			_ = dropped.Close()
			_ = dropped.Close()
			if err := quota.Reserve(10); err != nil {
				t.Fatal("what was closed is charged:", err)
			}
			quota.Release(10)
		})
	}
}

func TestDiskFailure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	quota := NewQuota("test", 10)
	builder := NewBuilder(Options{Memory: 2, Dir: dir, Quota: quota})
	if _, err := builder.Write([]byte("1")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := builder.Write([]byte("23"))
		if !errors.Is(err, abi.ErrUnavailable) || strings.Contains(err.Error(), dir) {
			t.Fatal(err)
		}
	}
	// The disk works again, and nothing was lost or written twice.
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := builder.Write([]byte("23")); err != nil {
		t.Fatal(err)
	}
	b, err := builder.Blob()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if text, err := b.Text(t.Context(), 10); err != nil || text != "123" {
		t.Fatal(text, err)
	}
	if quota.Reserve(8) == nil {
		t.Fatal("the quota is not what was written")
	}
}

func TestStore(t *testing.T) {
	opened, err := NewStore(StoreOptions{Limit: 10, Memory: 4, Dir: t.TempDir()}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := opened.(*Store)
	w := create(t, store)
	if err := errors.Join(
		w.Append(t.Context(), []byte("abc")), w.AppendText(t.Context(), "é"), w.AppendBlob(t.Context(), New("", []byte("xyz"))),
	); err != nil {
		t.Fatal(err)
	}
	b, err := store.Finish(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := b.Text(t.Context(), 10); err != nil || text != "abcéxyz" || b.MediaType(t.Context()) != "a/b" {
		t.Fatal(text, err)
	}
	if _, err := store.Finish(t.Context(), w); !errors.Is(err, abi.ErrInvalid) {
		t.Fatal(err)
	}
	if err := w.AppendText(t.Context(), "more"); !errors.Is(err, abi.ErrInvalid) {
		t.Fatal(err)
	}
	next := create(t, store)
	if err := next.AppendText(t.Context(), "123"); !errors.Is(err, abi.ErrExhausted) || !strings.Contains(err.Error(), "blob store: 10 bytes") {
		t.Fatal(err)
	}
	if err := next.AppendBlob(t.Context(), b); !errors.Is(err, abi.ErrExhausted) {
		t.Fatal(err)
	}
	_ = b.Close()
	if err := next.AppendText(t.Context(), "1234567890"); err != nil {
		t.Fatal("a closed blob is charged:", err)
	}
	other := NewStore(StoreOptions{})
	if _, err := other.Finish(t.Context(), next); !errors.Is(err, abi.ErrInvalid) {
		t.Fatal(err)
	}
	if err := create(t, store).AppendText(t.Context(), "1234567890"); err != nil {
		t.Fatal("a writer that was refused is charged:", err)
	}
	if err := create(t, other).Append(t.Context(), make([]byte, abi.MaxBytes+1)); !errors.Is(err, abi.ErrInvalid) {
		t.Fatal(err)
	}
	if err := create(t, other).AppendBlob(t.Context(), b); !errors.Is(err, abi.ErrInvalid) {
		t.Fatal("a closed blob is appended:", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := create(t, other).AppendBlob(ended, New("", make([]byte, 100))); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for _, mediaType := range []string{"a\r\nb", "é", strings.Repeat("a", 256), "\x00"} {
		if _, err := store.Create(t.Context(), mediaType); !errors.Is(err, abi.ErrInvalid) {
			t.Errorf("%q: %v", mediaType, err)
		}
	}
}

// TestCallsHaveTheirOwnStore checks that one call can neither use up another's quota nor finish its writer.
func TestCallsHaveTheirOwnStore(t *testing.T) {
	shared := NewStore(StoreOptions{Limit: 10})
	var writers []*Writer
	var stores []*Store
	for range 2 {
		opened, err := shared.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, opened.(*Store))
		writers = append(writers, create(t, stores[len(stores)-1]))
		if err := writers[len(writers)-1].AppendText(t.Context(), "1234567890"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stores[0].Finish(t.Context(), writers[1]); !errors.Is(err, abi.ErrInvalid) {
		t.Fatal(err)
	}
}

func create(t *testing.T, s *Store) *Writer {
	t.Helper()
	w, err := s.Create(t.Context(), "a/b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// TestBlobHoldsWhatWasWritten compares any sequence of writes and reads with a slice.
func TestBlobHoldsWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		builder := NewBuilder(Options{Memory: rapid.Int64Range(1, 64).Draw(t, "memory")})
		var model []byte
		for _, chunk := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 40)).Draw(t, "chunks") {
			if _, err := builder.Write(chunk); err != nil {
				t.Fatal(err)
			}
			model = append(model, chunk...)
		}
		b, err := builder.Blob()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = b.Close() }()
		offset := rapid.Uint64Range(0, uint64(len(model))+2).Draw(t, "offset")
		n := rapid.Uint32Range(0, 100).Draw(t, "n")
		have, err := b.Bytes(t.Context(), offset, n)
		from := min(offset, uint64(len(model)))
		if want := model[from:min(from+uint64(n), uint64(len(model)))]; err != nil || !bytes.Equal(have, want) {
			t.Fatalf("have %v, %v, want %v", have, err, want)
		}
		if sum := sha256.Sum256(model); b.Digest(t.Context()) != Digest(sum[:]) {
			t.Fatal("digest")
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	store := NewStore(StoreOptions{Memory: 100, Dir: t.TempDir()})
	w := create(t, store)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if err := w.AppendText(t.Context(), "0123456789"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	b, err := store.Finish(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				if i == 0 {
					_ = b.Close()
				}
				if text, err := b.Text(t.Context(), 1<<20); err == nil && text != strings.Repeat("0123456789", 400) {
					t.Error("the text is torn")
				}
			}
		})
	}
	all.Wait()
}

// TestBuilderIsReadWhileWritten checks that written bytes can be read, in memory and in the file, and that others cannot.
func TestBuilderIsReadWhileWritten(t *testing.T) {
	b := NewBuilder(Options{Memory: 4, Dir: t.TempDir()})
	defer func() { _ = b.Close() }()
	for _, step := range []struct{ write, have string }{{"", ""}, {"abc", "bc"}, {"defg", "bcd"}} {
		if _, err := b.Write([]byte(step.write)); err != nil {
			t.Fatal(err)
		}
		data, err := b.Bytes(1, 3)
		if err != nil || string(data) != step.have {
			t.Fatalf("have %q, %v, want %q", data, err, step.have)
		}
	}
	for _, offset := range []int64{-1, 7, 1 << 62} {
		if data, err := b.Bytes(offset, 1); err != nil || len(data) != 0 {
			t.Fatalf("at %d: %q, %v", offset, data, err)
		}
	}
	made, err := b.Blob()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = made.Close() }()
	if _, err := b.Bytes(0, 1); !errors.Is(err, abi.ErrInvalid) {
		t.Fatal(err)
	}
}

// TestMemoryIsBounded checks that the memory of all blobs is bounded, and that the rest of each quota is in one file.
func TestMemoryIsBounded(t *testing.T) {
	const perStore, size = 60, 1 << 20
	content := func(store, i int) []byte { return bytes.Repeat([]byte{byte(store), byte(i), 1}, size/3) }
	var stores []*Store
	var blobs [][]*Blob
	before, files := heap(), open(t)
	for s := range 6 {
		stores, blobs = append(stores, NewStore(StoreOptions{Dir: t.TempDir()})), append(blobs, nil)
		for i := range perStore {
			w := create(t, stores[s])
			for part := range slices.Chunk(content(s, i), 100_000) {
				if err := w.Append(t.Context(), part); err != nil {
					t.Fatal(err)
				}
			}
			b, err := stores[s].Finish(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			blobs[s] = append(blobs[s], b)
		}
	}
	if grown := heap() - before; grown > 80<<20 {
		t.Errorf("%d blobs of 1 MiB have %d MiB of memory", 6*perStore, grown>>20)
	}
	if more := open(t) - files; more > len(stores) {
		t.Errorf("%d files for %d stores", more, len(stores))
	}
	for s := range stores {
		for i, b := range blobs[s] {
			if text, err := b.Text(t.Context(), size); err != nil || text != string(content(s, i)) {
				t.Fatalf("blob %d of store %d: %d bytes, %v", i, s, len(text), err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if more := open(t) - files; more > 0 || memory.used != 0 {
		t.Errorf("%d files and %d bytes are left", more, memory.used)
	}
}

// heap returns how many bytes of memory are in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// open returns how many files the process has open.
func open(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// TestFileIsShared checks that blobs of a quota share its file with earlier ones, and that none reads another's bytes.
func TestFileIsShared(t *testing.T) {
	quota := NewQuota("test", 1<<30)
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		var builders []*Builder
		var written [][]byte
		var blobs []*Blob
		var models [][]byte
		size := rapid.SampledFrom([]int{1, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 7})
		fill := byte(0)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "which") }
			switch step := rapid.IntRange(0, 4).Draw(t, "step"); {
			case len(builders) == 0 || step == 0:
				builders, written = append(builders, NewBuilder(Options{Memory: 10, Dir: dir, Quota: quota})), append(written, nil)
			case step <= 2:
				i := pick(len(builders))
				fill++
				data := bytes.Repeat([]byte{fill}, size.Draw(t, "size"))
				if _, err := builders[i].Write(data); err != nil {
					t.Fatal(err)
				}
				written[i] = append(written[i], data...)
			case step == 3:
				i := pick(len(builders))
				b, err := builders[i].Blob()
				if err != nil {
					t.Fatal(err)
				}
				blobs, models = append(blobs, b), append(models, written[i])
				builders, written = slices.Delete(builders, i, i+1), slices.Delete(written, i, i+1)
			case len(blobs) > 0:
				i := pick(len(blobs))
				have, err := io.ReadAll(blobs[i].Reader())
				if err != nil || !bytes.Equal(have, models[i]) {
					t.Fatalf("a blob of %d bytes has %d, %v", len(models[i]), len(have), err)
				}
				if n, err := blobs[i].ReadAt(make([]byte, chunkSize), int64(len(models[i]))); n != 0 || !errors.Is(err, io.EOF) {
					t.Fatalf("%d bytes behind the end, %v", n, err)
				}
				if err := blobs[i].Close(); err != nil {
					t.Fatal(err)
				}
				blobs, models = slices.Delete(blobs, i, i+1), slices.Delete(models, i, i+1)
			}
		}
		for i, b := range builders {
			if have, err := b.Bytes(0, len(written[i])+1); err != nil || !bytes.Equal(have, written[i]) {
				t.Fatalf("%d of %d bytes, %v", len(have), len(written[i]), err)
			}
			_ = b.Close()
		}
		for _, b := range blobs {
			_ = b.Close()
		}
		if quota.file != nil || quota.used != 0 {
			t.Fatalf("%d bytes are left", quota.used)
		}
	})
}

// TestBindingsShareQuota gives one call two bindings, and another call one binding.
func TestBindingsShareQuota(t *testing.T) {
	ctx := abi.WithCall(t.Context())
	fill := func(ctx context.Context) error {
		t.Helper()
		opened, err := NewStore(StoreOptions{Limit: 10}).Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		w, err := opened.(*Store).Create(ctx, "text/plain")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Close() })
		return w.Append(ctx, []byte("12345678"))
	}
	if err := fill(ctx); err != nil {
		t.Error(err)
	}
	if err := fill(ctx); !errors.Is(err, abi.ErrExhausted) {
		t.Errorf("another binding of the call: %v", err)
	}
	if err := fill(abi.WithCall(ctx)); err != nil {
		t.Errorf("another call: %v", err)
	}
}
