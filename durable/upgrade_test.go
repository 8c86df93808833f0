package durable_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/durable"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/sqlite"
)

// TestOlderStore opens stores of each earlier version of the schema, with a run that sleeps. The run goes on to its end, and its code is removed with it.
func TestOlderStore(t *testing.T) {
	for version := 1; version < durable.Versions(); version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			s := newStored(t)
			spec := program(t, s.shop, s.cacheDir, s.keyDir, `await env.store.increment("n", 1); await env.clock.sleep(3600000); return await env.store.increment("n", 1);`)
			run, _, err := s.runs.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			s.runs.Work()
			s.until(t, run.Name, durable.Asleep)
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			file, newer := filepath.Join(s.dir, durable.File), filepath.Join(s.dir, "newer.db")
			if err := os.Rename(file, newer); err != nil {
				t.Fatal(err)
			}
			older, err := sqlite.Open(t.Context(), file, durable.SchemaAt(version))
			if err != nil {
				t.Fatal(err)
			}
			if err := older.Close(); err != nil {
				t.Fatal(err)
			}
			copyOlder(t, file, newer)
			s.reopen(t)
			s.set(2 * 3600e9)
			s.runs.Work()
			if r := s.until(t, run.Name, durable.Done); string(r.Output) != "2" {
				t.Errorf("it returned %s", r.Output)
			}
			if removed, err := s.runs.Remove(t.Context(), run.Name); err != nil || !removed {
				t.Error(removed, err)
			}
			if n := s.count(t, `SELECT count(*) FROM code`); n != 0 {
				t.Errorf("%d rows of code are left", n)
			}
		})
	}
}

// copyOlder copies what the older version of a store can hold of a newer one.
func copyOlder(t *testing.T, file, newer string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	list := func(query string) (names []string) {
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return names
	}
	if _, err := db.ExecContext(t.Context(), `ATTACH ? AS newer`, newer); err != nil {
		t.Fatal(err)
	}
	for _, table := range list(`SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`) {
		columns := strings.Join(list(`SELECT name FROM pragma_table_info('`+table+`', 'main')`), ", ")
		if _, err := db.ExecContext(t.Context(), `INSERT INTO main.`+table+` (`+columns+`) SELECT `+columns+` FROM newer.`+table); err != nil {
			t.Fatal(table, err)
		}
	}
}

// TestOtherEngine has runs of two builds of the engine in one store: each goes on under its own, in a process whose toolchain has neither loaded.
func TestOtherEngine(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `await env.store.increment("n", 1); await env.clock.sleep(3600000); return await env.store.increment("n", 1);`)
	other := spec
	wasm := bytesOf(t, spec.Component.Read)
	for was, read := range spec.Modules {
		engine := append(bytes.Clone(bytesOf(t, read)), 0, 6, 5, 'o', 't', 'h', 'e', 'r') // a custom section
		is := host.ModuleName(engine)
		if !bytes.Contains(wasm, []byte(was)) || len(was) != len(is) {
			t.Fatalf("the component does not import %s", was)
		}
		other.Component = durable.CodeOf(bytes.ReplaceAll(wasm, []byte(was), []byte(is)))
		other.Modules = durable.Modules{is: durable.CodeOf(engine).Read}
	}
	var names []string
	for i, one := range []durable.Spec{spec, other} {
		one.Target = fmt.Sprint("engine", i)
		run, _, err := s.runs.Start(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, run.Name)
	}
	s.runs.Work()
	for _, name := range names {
		s.until(t, name, durable.Asleep)
	}
	if n := s.count(t, `SELECT count(*) FROM code`); n != 4 {
		t.Errorf("%d rows of code", n)
	}
	s.change(t)
	s.set(2 * 3600e9)
	s.runs.Work()
	for _, name := range names {
		if r := s.until(t, name, durable.Done); string(r.Output) != "2" {
			t.Errorf("it returned %s", r.Output)
		}
	}
}
