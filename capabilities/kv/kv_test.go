package kv

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/captest"
	"github.com/stilehost/stile/wit"
)

var _ abi.Capability = (*Bucket)(nil)

func opened(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "kv.db"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func get(t testing.TB, b *Bucket, key string) string {
	t.Helper()
	v, err := b.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if v == nil {
		return "<none>"
	}
	return *v
}

func set(t testing.TB, b *Bucket, key, value string) {
	t.Helper()
	if err := b.Set(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// all lists a prefix page by page.
func all(t testing.TB, b *Bucket, prefix string, limit uint32) (keys []string, pages int) {
	t.Helper()
	var cursor *string
	for {
		p, err := b.List(t.Context(), prefix, limit, cursor)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, e := range p.Entries {
			keys = append(keys, e.Key)
		}
		if p.Cursor == nil {
			return keys, pages
		}
		if len(p.Entries) == 0 {
			t.Fatal("an empty page with a cursor")
		}
		cursor = p.Cursor
	}
}

func TestMatchesWIT(t *testing.T) {
	captest.Implements(t, wit.Capability(), Interface, []string{"bucket.set", "bucket.delete", "bucket.increment", "bucket.compare-and-set"}, reflect.TypeFor[*Bucket]())
}

func TestValuesComeBackAsTheyAre(t *testing.T) {
	b := opened(t, Options{}).Bucket("b")
	texts := []string{
		"a", " ", "'; DROP TABLE entry; --", "\x00", "a\x00b", "\u202e", "日本語", "e\u0301", "é", "\ufeff", "%", "_", "1", "01", "1.0", "NULL",
		strings.Repeat("k", 1024),
	}
	for _, text := range texts {
		set(t, b, text, text)
	}
	set(t, b, "empty value", "")
	set(t, b, "large", strings.Repeat("v", 1<<20))
	for _, text := range texts {
		if got := get(t, b, text); got != text {
			t.Errorf("%q came back as %q", text, got)
		}
	}
	if get(t, b, "empty value") != "" || len(get(t, b, "large")) != 1<<20 || get(t, b, "missing") != "<none>" {
		t.Error("empty, large or missing value")
	}
	want := append(slices.Clone(texts), "empty value", "large")
	slices.Sort(want)
	if got, _ := all(t, b, "", 3); !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
}

func TestBucketsAreApart(t *testing.T) {
	s := opened(t, Options{})
	names := []string{"", "a", "A", "a\x00", "'"}
	for _, name := range names {
		set(t, s.Bucket(name), "k", "of "+name)
	}
	for _, name := range names {
		if got := get(t, s.Bucket(name), "k"); got != "of "+name {
			t.Errorf("bucket %q has %q", name, got)
		}
		if keys, _ := all(t, s.Bucket(name), "", 10); len(keys) != 1 {
			t.Errorf("bucket %q lists %q", name, keys)
		}
	}
	if _, err := s.Bucket("a").Delete(t.Context(), "k"); err != nil || get(t, s.Bucket("A"), "k") != "of A" {
		t.Errorf("a delete reached another bucket (%v)", err)
	}
}

func TestRefusals(t *testing.T) {
	b := opened(t, Options{}).Bucket("b")
	set(t, b, "text", "seven")
	set(t, b, "float", "1.5")
	set(t, b, "huge", "9223372036854775808")
	set(t, b, "max", fmt.Sprint(math.MaxInt64))
	set(t, b, "min", fmt.Sprint(math.MinInt64))
	ctx := t.Context()
	long, broken := strings.Repeat("k", 1025), "\xff\xfe"
	list := func(prefix string, limit uint32, cursor *string) error {
		_, err := b.List(ctx, prefix, limit, cursor)
		return err
	}
	increment := func(key string, delta int64) error {
		_, err := b.Increment(ctx, key, delta)
		return err
	}
	cas := func(key string, expected, value *string) error {
		_, err := b.CompareAndSet(ctx, key, expected, value)
		return err
	}
	get := func(key string) error {
		_, err := b.Get(ctx, key)
		return err
	}
	remove := func(key string) error {
		_, err := b.Delete(ctx, key)
		return err
	}
	encode := func(key string) *string { return new(base64.RawURLEncoding.EncodeToString([]byte(key))) }
	for _, tt := range []struct {
		name string
		err  error
		want *abi.Error
		text string
	}{
		{"get: empty key", get(""), abi.ErrInvalid, "empty"},
		{"get: long key", get(long), abi.ErrExhausted, "limit 1024, needed 1025"},
		{"get: key not UTF-8", get(broken), abi.ErrInvalid, "UTF-8"},
		{"set: empty key", b.Set(ctx, "", "v"), abi.ErrInvalid, "empty"},
		{"set: long key", b.Set(ctx, long, "v"), abi.ErrExhausted, "limit 1024, needed 1025"},
		{"set: key not UTF-8", b.Set(ctx, broken, "v"), abi.ErrInvalid, "UTF-8"},
		{"set: value not UTF-8", b.Set(ctx, "k", broken), abi.ErrInvalid, "UTF-8"},
		{"set: surrogate half", b.Set(ctx, "k", "\xed\xa0\x80"), abi.ErrInvalid, "UTF-8"},
		{"set: large value", b.Set(ctx, "k", strings.Repeat("v", 1<<20+1)), abi.ErrExhausted, "limit 1048576, needed 1048577"},
		{"delete: long key", remove(long), abi.ErrExhausted, "1025"},
		{"increment: empty key", increment("", 1), abi.ErrInvalid, "empty"},
		{"increment: text", increment("text", 1), abi.ErrInvalid, `"text" is not a 64-bit decimal integer`},
		{"increment: fraction", increment("float", 1), abi.ErrInvalid, "integer"},
		{"increment: stored value too large", increment("huge", 1), abi.ErrInvalid, "integer"},
		{"increment: overflow", increment("max", 1), abi.ErrInvalid, "does not fit"},
		{"increment: large overflow", increment("max", math.MaxInt64), abi.ErrInvalid, "does not fit"},
		{"increment: underflow", increment("min", -1), abi.ErrInvalid, "does not fit"},
		{"increment: large underflow", increment("min", math.MinInt64), abi.ErrInvalid, "does not fit"},
		{"compare-and-set: long key", cas(long, nil, nil), abi.ErrExhausted, "1025"},
		{"compare-and-set: large value", cas("k", nil, new(strings.Repeat("v", 1<<20+1))), abi.ErrExhausted, "1048577"},
		{"list: limit 0", list("", 0, nil), abi.ErrInvalid, "limit"},
		{"list: prefix not UTF-8", list(broken, 1, nil), abi.ErrInvalid, "UTF-8"},
		{"list: long prefix", list(long, 1, nil), abi.ErrExhausted, "1025"},
		{"list: empty cursor", list("", 1, new("")), abi.ErrInvalid, "cursor"},
		{"list: cursor not base64", list("", 1, new("a b!")), abi.ErrInvalid, "cursor"},
		{"list: cursor with trailing bits", list("", 1, new("YR")), abi.ErrInvalid, "cursor"},
		{"list: cursor not UTF-8", list("", 1, encode(broken)), abi.ErrInvalid, "cursor"},
		{"list: cursor of another prefix", list("m", 1, encode("text")), abi.ErrInvalid, "cursor"},
		{"list: huge cursor", list("", 1, new(strings.Repeat("?", 10<<20))), abi.ErrInvalid, "cursor"},
	} {
		if !errors.Is(tt.err, tt.want) || tt.err != nil && !strings.Contains(tt.err.Error(), tt.text) {
			t.Errorf("%s: got %v, want %v with %q", tt.name, tt.err, tt.want, tt.text)
		}
	}
	if got, _ := all(t, b, "", 10); !slices.Equal(got, []string{"float", "huge", "max", "min", "text"}) {
		t.Errorf("a refused operation changed the bucket: %q", got)
	}
}

func TestBucketLimits(t *testing.T) {
	b := opened(t, Options{Keys: 3, BucketBytes: 20}).Bucket("b")
	ctx := t.Context()
	set(t, b, "a", "1234")
	set(t, b, "b", "1234")
	set(t, b, "c", "1234")
	if err := b.Set(ctx, "d", ""); !errors.Is(err, abi.ErrExhausted) || !strings.Contains(err.Error(), "keys in the bucket: limit 3, needed 4") {
		t.Errorf("a key too many: %v", err)
	}
	if err := b.Set(ctx, "a", "1234567890"); !errors.Is(err, abi.ErrExhausted) || !strings.Contains(err.Error(), "bytes in the bucket: limit 20, needed 21") {
		t.Errorf("a byte too many: %v", err)
	}
	if _, err := b.Increment(ctx, "n", 1); !errors.Is(err, abi.ErrExhausted) {
		t.Errorf("increment: %v", err)
	}
	if did, err := b.CompareAndSet(ctx, "n", nil, new("1")); did || !errors.Is(err, abi.ErrExhausted) {
		t.Errorf("compare-and-set: %v, %v", did, err)
	}
	if get(t, b, "a") != "1234" || get(t, b, "d") != "<none>" || get(t, b, "n") != "<none>" {
		t.Error("a refused change stayed")
	}
	set(t, b, "a", "123456789") // exactly full
	if _, err := b.Delete(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	set(t, b, "d", "1234") // removed bytes are free again
}

func TestLoweredLimitLetsShrink(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kv.db")
	s, err := Open(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	set(t, s.Bucket("b"), "a", "12345678")
	set(t, s.Bucket("b"), "b", "12345678")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(t.Context(), file, Options{Keys: 1, BucketBytes: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	b := s.Bucket("b")
	set(t, b, "a", "1234567")
	if err := b.Set(t.Context(), "a", "12345678"); !errors.Is(err, abi.ErrExhausted) {
		t.Errorf("grew over the limit: %v", err)
	}
	if there, err := b.Delete(t.Context(), "a"); !there || err != nil {
		t.Error(there, err)
	}
}

func TestListPages(t *testing.T) {
	b := opened(t, Options{}).Bucket("b")
	var want []string
	for i := range 2500 {
		key := fmt.Sprintf("k%04d", i)
		want = append(want, key)
		set(t, b, key, "v")
	}
	set(t, b, "j", "")
	set(t, b, "l", "")
	for _, tt := range []struct {
		limit uint32
		pages int
	}{{1000, 3}, {math.MaxUint32, 3}, {2500, 3}, {999, 3}, {500, 5}} {
		if got, pages := all(t, b, "k", tt.limit); !slices.Equal(got, want) || pages != tt.pages {
			t.Errorf("limit %d: %d keys in %d pages, want %d in %d", tt.limit, len(got), pages, len(want), tt.pages)
		}
	}
	// Removing the entry that the cursor names does not disturb the listing.
	p, err := b.List(t.Context(), "k", 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Delete(t.Context(), "k0009"); err != nil {
		t.Fatal(err)
	}
	p, err = b.List(t.Context(), "k", 1, p.Cursor)
	if err != nil || len(p.Entries) != 1 || p.Entries[0].Key != "k0010" {
		t.Errorf("got %v, %v", p.Entries, err)
	}
}

func TestListPageIsBoundedInBytes(t *testing.T) {
	b := opened(t, Options{}).Bucket("b")
	for i := range 8 {
		set(t, b, fmt.Sprint(i), strings.Repeat("v", 1<<20))
	}
	if keys, pages := all(t, b, "", 1000); len(keys) != 8 || pages != 8 {
		t.Errorf("8 values of 1 MiB came in %d pages: %q", pages, keys)
	}
}

func TestConcurrentChanges(t *testing.T) {
	s := opened(t, Options{})
	set(t, s.Bucket("b"), "cas", "0")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			b := s.Bucket("b")
			for range 50 {
				if _, err := b.Increment(t.Context(), "n", 1); err != nil {
					t.Error(err)
				}
				for did := false; !did; {
					old, err := b.Get(t.Context(), "cas")
					if err != nil {
						t.Error(err)
						return
					}
					if did, err = b.CompareAndSet(t.Context(), "cas", old, new(*old+".")); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if got := get(t, s.Bucket("b"), "n"); got != "200" {
		t.Errorf("incremented to %s, want 200", got)
	}
	if got := len(get(t, s.Bucket("b"), "cas")); got != 201 {
		t.Errorf("swapped %d times, want 200", got-1)
	}
}

func TestCancelled(t *testing.T) {
	b := opened(t, Options{}).Bucket("b")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err1 := b.Get(ctx, "k")
	_, err2 := b.List(ctx, "", 1, nil)
	for _, err := range []error{err1, err2, b.Set(ctx, "k", "v")} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

func TestRandomHistories(t *testing.T) {
	key := rapid.SampledFrom([]string{"a", "ab", "a\x00", "b", "é", "日", "1"})
	value := rapid.SampledFrom([]string{"", "0", "-7", "41", "x", "9223372036854775807"})
	option := rapid.Ptr(value, true)
	dir, files := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		files++
		s, err := Open(t.Context(), filepath.Join(dir, fmt.Sprint(files)), Options{Keys: 5, BucketBytes: 40})
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		b, model := s.Bucket("b"), map[string]string{}
		fits := func(k, v string) bool {
			m := maps.Clone(model)
			m[k] = v
			size := 0
			for k, v := range m {
				size += len(k) + len(v)
			}
			before := 0
			for k, v := range model {
				before += len(k) + len(v)
			}
			return (len(m) <= 5 || len(m) == len(model)) && (size <= 40 || size <= before)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"set": func(rt *rapid.T) {
				k, v := key.Draw(rt, "key"), value.Draw(rt, "value")
				err := b.Set(t.Context(), k, v)
				if ok := fits(k, v); ok != (err == nil) || err != nil && !errors.Is(err, abi.ErrExhausted) {
					rt.Fatalf("set: %v, fits %v", err, ok)
				} else if ok {
					model[k] = v
				}
			},
			"delete": func(rt *rapid.T) {
				k := key.Draw(rt, "key")
				_, want := model[k]
				if got, err := b.Delete(t.Context(), k); got != want || err != nil {
					rt.Fatalf("delete: %v, %v", got, err)
				}
				delete(model, k)
			},
			"compare-and-set": func(rt *rapid.T) {
				k, expected, v := key.Draw(rt, "key"), option.Draw(rt, "expected"), option.Draw(rt, "value")
				current, there := model[k]
				want := there == (expected != nil) && (!there || current == *expected)
				got, err := b.CompareAndSet(t.Context(), k, expected, v)
				switch {
				case want && v != nil && !fits(k, *v):
					if got || !errors.Is(err, abi.ErrExhausted) {
						rt.Fatalf("compare-and-set over the limit: %v, %v", got, err)
					}
				case got != want || err != nil:
					rt.Fatalf("compare-and-set: %v, %v", got, err)
				case want && v == nil:
					delete(model, k)
				case want:
					model[k] = *v
				}
			},
			"": func(rt *rapid.T) {
				page, err := b.List(t.Context(), "", 100, nil)
				if err != nil {
					rt.Fatal(err)
				}
				got := map[string]string{}
				for _, e := range page.Entries {
					got[e.Key] = e.Value
				}
				if !maps.Equal(got, model) {
					rt.Fatalf("have %q, want %q", got, model)
				}
			},
		})
	})
}

func BenchmarkGet(b *testing.B) {
	bucket := opened(b, Options{}).Bucket("b")
	for i := range 1000 {
		set(b, bucket, fmt.Sprint(i), "a value of some forty bytes, as they are")
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		if v, err := bucket.Get(ctx, "500"); err != nil || v == nil {
			b.Fatal(v, err)
		}
	}
}

func BenchmarkSet(b *testing.B) {
	bucket := opened(b, Options{}).Bucket("b")
	for i := 0; b.Loop(); i++ { // SQLite writes nothing when the value stays the same
		set(b, bucket, "key", fmt.Sprintf("a value of some forty bytes, %11d", i))
	}
}
