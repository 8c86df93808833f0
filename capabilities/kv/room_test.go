package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/sqlite"
)

// TestRoomOfOwner has one owner fill ever more buckets, as an agent does that writes and removes extensions. The file has at most twice the
// limit, and other owners have room.
func TestRoomOfOwner(t *testing.T) {
	const limit = 1 << 20
	for name, value := range map[string]int{"tiny": 1, "small": 600, "large": 70_000} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kv.db")
			room := capability.Room{Owner: limit, All: limit + 64<<10}
			s, err := Open(t.Context(), file, Options{Room: func() capability.Room { return room }})
			if err != nil {
				t.Fatal(err)
			}
			var full *Bucket
			for n := 0; full == nil; n++ {
				b := s.Bucket(fmt.Sprintf("agent.a.x%d/cache", n))
				if err := s.db.Update(t.Context(), func(c *sqlite.Conn) error {
					for i := range 8 {
						err := b.put(t.Context(), c, fmt.Sprint(i), strings.Repeat("v", value))
						if errors.Is(err, abi.ErrExhausted) && strings.Contains(err.Error(), "in this scope") {
							full = b
							_, err = b.remove(t.Context(), c, fmt.Sprint(i))
							return err
						} else if err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if n > limit/256 {
					t.Fatal("there is no end")
				}
			}
			sound(t, s)
			if err := full.Set(t.Context(), "more", strings.Repeat("v", value+256)); !errors.Is(err, abi.ErrExhausted) {
				t.Errorf("got %v", err)
			}
			for i := range 8 {
				if _, err := s.Bucket("agent.a.x1/cache").Delete(t.Context(), fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			}
			set(t, full, "more", "")
			set(t, s.Bucket("agent.b.x"), "key", "value")
			set(t, s.Bucket("plain"), "key", "value")
			if err := s.Bucket("user.b.x").Set(t.Context(), "key", strings.Repeat("v", 1_000_000)); !errors.Is(err, abi.ErrExhausted) || strings.Contains(err.Error(), "in this scope") {
				t.Errorf("above the limit of all: %v", err)
			}
			room = capability.Room{}
			set(t, s.Bucket("agent.a.y"), "key", "value")
			sound(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(file)
			if err != nil || info.Size() > 2*limit {
				t.Errorf("the file has %d bytes, %v", info.Size(), err)
			}
		})
	}
}

// TestEmptyBucketsLeaveNothing uses a bucket after the other, and empties it.
func TestEmptyBucketsLeaveNothing(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "kv.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for n := range 20 {
		b := s.Bucket(fmt.Sprintf("agent.a.x%d", n))
		set(t, b, "key", "value")
		if there, err := b.Delete(t.Context(), "key"); err != nil || !there {
			t.Fatal(err)
		}
	}
	var rows int
	if err := s.db.View(t.Context(), func(c *sqlite.Conn) error {
		return c.Row(t.Context(), `SELECT (SELECT count(*) FROM usage) + (SELECT count(*) FROM owned)`).Scan(&rows)
	}); err != nil || rows != 0 {
		t.Errorf("%d rows are left, %v", rows, err)
	}
}

// sound checks that what buckets take is counted.
func sound(t *testing.T, s *Store) {
	t.Helper()
	if err := s.db.View(t.Context(), func(c *sqlite.Conn) error {
		for _, query := range []string{
			`SELECT count(*) FROM usage WHERE bytes != (SELECT ifnull(sum(size), 0) FROM entry WHERE entry.bucket = usage.bucket) OR keys = 0`,
			`SELECT (SELECT sum(bytes) FROM owned) - (SELECT sum(bytes + 64 * keys + 256) FROM usage)`,
		} {
			var n int
			if err := c.Row(t.Context(), query).Scan(&n); err != nil || n != 0 {
				t.Errorf("%s: %d, %v", query, n, err)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
