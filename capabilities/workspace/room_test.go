package workspace

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

// TestRoomOfOwner has one owner use ever more workspaces, as an agent does that writes and removes extensions. Whatever they are filled with, the
// file has at most twice the limit.
func TestRoomOfOwner(t *testing.T) {
	const limit = 1 << 20
	deep := strings.Repeat("d/", 1500)
	long := strings.Repeat("n", 200) + "/"
	copied := func(to string) func(*Directory, int) error {
		return func(d *Directory, i int) error {
			if i == 0 {
				return errors.Join(d.Write(t.Context(), "from/a", "content"), d.Write(t.Context(), "from/b/c", strings.Repeat("c", 1000)))
			}
			return d.Copy(t.Context(), "from", fmt.Sprint(to, i))
		}
	}
	for name, fill := range map[string]func(d *Directory, i int) error{
		"contents": func(d *Directory, i int) error {
			return d.Write(t.Context(), fmt.Sprint(i), strings.Repeat(fmt.Sprint(i), 70_000))
		},
		"small files": func(d *Directory, i int) error { return d.Write(t.Context(), fmt.Sprint(i), "") },
		"nothing": func(d *Directory, i int) error {
			return errors.Join(d.Write(t.Context(), "a", ""), d.Remove(t.Context(), "a", false))
		},
		"paths": func(d *Directory, i int) error {
			return d.Write(t.Context(), fmt.Sprint(strings.Repeat(long, 5), i), "")
		},
		"long paths": func(d *Directory, i int) error {
			return d.Write(t.Context(), fmt.Sprint(strings.Repeat(long, 19), i), "")
		},
		"directories": func(d *Directory, i int) error { return d.MakeDirectory(t.Context(), fmt.Sprint(i, "/", deep[:400])) },
		"links": func(d *Directory, i int) error {
			return d.MakeLink(t.Context(), fmt.Sprint("l", i), strings.Repeat(long, 20))
		},
		"copies":      copied("to"),
		"deep copies": copied(strings.Repeat(long, 18)),
		"moves": func(d *Directory, i int) error {
			return errors.Join(d.Write(t.Context(), "from/a", "content"), d.Move(t.Context(), "from", fmt.Sprint(strings.Repeat(long, 10), i)))
		},
		"snapshots": func(d *Directory, i int) error {
			if err := d.Write(t.Context(), fmt.Sprint(strings.Repeat(long, 4), i), "content"); err != nil {
				return err
			}
			_, err := d.Snapshot(t.Context())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "ws.db")
			room := capability.Room{Owner: limit, All: limit + 64<<10}
			s, err := Open(t.Context(), file, Options{Room: func() capability.Room { return room }})
			if err != nil {
				t.Fatal(err)
			}
			var full error
			var last *Directory
			for n := 0; full == nil; n++ {
				last = s.Workspace(fmt.Sprintf("agent.a.x%d", n))
				for i := 0; i < 12 && full == nil; i++ {
					full = fill(last, i)
				}
				if n > limit/256 {
					t.Fatal("there is no end")
				}
			}
			if !errors.Is(full, abi.ErrExhausted) || !strings.Contains(full.Error(), "in this scope: limit 1048576") {
				t.Fatal(full)
			}
			sound(t, s)
			other := s.Workspace("agent.b.x")
			write(t, other, "a", "content")
			if err := other.Write(t.Context(), "b", strings.Repeat("b", limit)); !errors.Is(err, abi.ErrExhausted) {
				t.Errorf("above the limit of all: %v", err)
			}
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

// TestRoomIsMade goes on in a workspace that is full: its history makes room, and what is removed is free in the end.
func TestRoomIsMade(t *testing.T) {
	const limit = 1 << 20
	s := opened(t, Options{Room: func() capability.Room { return capability.Room{Owner: limit} }})
	d, other := s.Workspace("agent.a.x"), s.Workspace("agent.a.y")
	write(t, other, "kept", "before")
	write(t, other, "kept", "after")
	text := strings.Repeat("t", 100_000)
	for i := range 30 {
		write(t, d, "same", fmt.Sprint(i, text))
	}
	for i := range 9 {
		write(t, d, fmt.Sprint(i), text)
	}
	if err := d.Write(t.Context(), "one more", text); !errors.Is(err, abi.ErrExhausted) {
		t.Fatal(err)
	}
	if err := d.Remove(t.Context(), "0", false); err != nil {
		t.Fatal(err)
	}
	write(t, d, "one more", text)
	if history, err := other.History(t.Context(), "kept"); err != nil || len(history) != 1 {
		t.Errorf("of another workspace there is %v, %v", history, err)
	}
}

// TestOlderRoom has a store that was filled before rooms were counted.
func TestOlderRoom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ws.db")
	older := schema
	older.Migrations = schema.Migrations[:len(schema.Migrations)-2] // before there was the room of an owner
	db, err := sqlite.Open(t.Context(), file, older)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(t.Context(), func(c *sqlite.Conn) error {
		for _, statement := range []string{
			`INSERT INTO content VALUES (1, 3, CAST('old' AS BLOB)), (2, 3, CAST('new' AS BLOB))`,
			`UPDATE serial SET last = 2`,
			`INSERT INTO node (workspace, parent, name, kind, size, modified, mode, content) VALUES ('agent.a.x', '', 'a', 0, 3, 0, 420, 1), ('w', '', 'b', 1, 0, 0, 493, NULL)`,
			`UPDATE node SET content = 2 WHERE name = 'a'`,
			`INSERT INTO snapshot (workspace, base, taken, files, bytes) VALUES ('agent.a.x', '', 0, 1, 3)`,
			`INSERT INTO kept SELECT 1, parent, name, kind, size, modified, mode, content, target FROM node WHERE name = 'a'`,
		} {
			if _, err := c.Exec(t.Context(), statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	sound(t, s)
	write(t, s.Workspace("agent.a.x"), "a", "newer")
	sound(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
