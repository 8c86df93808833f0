package kv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sqlite"
)

// TestFullBucketTakesLittle fills buckets with entries of one size, in several orders, and compares the file with the limit. The orders
// that remove entries leave pages as empty as possible, fill the bucket again, and so on.
func TestFullBucketTakesLittle(t *testing.T) {
	t.Parallel()
	const limit, keys = 1 << 20, 1562 // a sixty-fourth of the defaults
	dir := t.TempDir()
	for i, tt := range []struct{ bucket, key, value int }{
		{1, 4, 0},
		{200, 12, 330},
		{1, 12, 671},
		{200, 12, 500},
		{200, 12, 671},
		{200, 12, 800}, // above a row's room with the name only
		{1, 12, 970},
		{1, 12, 1000},
		{1, 1024, 0},
		{200, 1024, 900},
		{200, 12, 2000},
		{1, 12, 5100},
		{1, 12, 70_000},
	} {
		for _, o := range []struct {
			name        string
			keep, group int // keep so many of each group
		}{{name: "ascending"}, {name: "random"}, {"keep 2 of 3", 2, 3}, {"keep 3 of 5", 3, 5}, {"keep 3 of 6", 3, 6}} {
			file := filepath.Join(dir, fmt.Sprint(i, o.name))
			s, err := Open(t.Context(), file, Options{BucketBytes: limit, Keys: keys})
			if err != nil {
				t.Fatal(err)
			}
			b, value, random := s.Bucket(strings.Repeat("b", tt.bucket)), strings.Repeat("v", tt.value), rand.New(rand.NewPCG(1, 2))
			for round := range 6 {
				names := make([]string, keys)
				for i := range names {
					names[i] = fmt.Sprintf("%0*d", tt.key, round*keys+i)
				}
				if o.name == "random" {
					random.Shuffle(keys, func(i, j int) { names[i], names[j] = names[j], names[i] })
				}
				n := fill(t, b, names, value)
				if o.group == 0 {
					break
				}
				if err := s.db.Update(t.Context(), func(c *sqlite.Conn) error {
					for i, name := range names[:n] {
						if i%o.group >= o.keep {
							if _, err := b.remove(t.Context(), c, name); err != nil {
								return err
							}
						}
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() > 2*limit {
				t.Errorf("%+v, %s: the file has %.1f times the limit", tt, o.name, float64(info.Size())/limit)
			}
		}
	}
}

// fill sets keys to value in one transaction, until the bucket is full, and returns how many it set.
func fill(t *testing.T, b *Bucket, keys []string, value string) (n int) {
	t.Helper()
	if err := b.store.db.Update(t.Context(), func(c *sqlite.Conn) error {
		for n = range keys {
			err := b.put(t.Context(), c, keys[n], value)
			if errors.Is(err, abi.ErrExhausted) { // the transaction still has it
				_, err = b.remove(t.Context(), c, keys[n])
				return err
			} else if err != nil {
				return err
			}
		}
		n = len(keys)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestOlderStore has a bucket that a program filled before sizes counted what entries take.
func TestOlderStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kv.db")
	older := schema
	older.Migrations = schema.Migrations[:1]
	db, err := sqlite.Open(t.Context(), file, older)
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("v", 1500)
	if err := db.Update(t.Context(), func(c *sqlite.Conn) error {
		for _, e := range [][2]string{{"a", large}, {"b", large}, {"c", "small"}} {
			if _, err := c.Exec(t.Context(), `INSERT INTO entry VALUES ('b', ?, ?)`, []byte(e[0]), e[1]); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), file, Options{BucketBytes: 9222})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	b := s.Bucket("b")
	if keys, _ := all(t, b, "", 10); len(keys) != 3 || get(t, b, "a") != large || get(t, b, "c") != "small" {
		t.Errorf("the store has %q", keys)
	}
	if err := b.Set(t.Context(), "d", ""); !errors.Is(err, abi.ErrExhausted) || !strings.Contains(err.Error(), "needed 9223") {
		t.Errorf("a bucket above its limit took a key: %v", err)
	}
	set(t, b, "a", "small")
	if _, err := b.Delete(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	set(t, b, "d", strings.Repeat("v", 1500))
	for _, key := range []string{"a", "b", "d"} {
		if _, err := b.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.db.View(t.Context(), func(c *sqlite.Conn) error {
		if keys, bytes, err := b.usage(t.Context(), c); keys != 0 || bytes != 0 || err != nil {
			t.Errorf("an empty bucket has %d keys of %d bytes: %v", keys, bytes, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
