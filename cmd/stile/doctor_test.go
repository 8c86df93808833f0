package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stilehost/stile/durable"
)

// TestDoctorOfRuns examines runs whose file is intact, but of no use with this key or version.
func TestDoctorOfRuns(t *testing.T) {
	home := t.TempDir()
	key := filepath.Join(home, runsKey)
	write := func(size int) {
		t.Helper()
		if err := os.WriteFile(key, []byte(strings.Repeat("k", size)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(durable.KeySize)
	runs, err := durable.Open(t.Context(), durable.Options{Dir: home, Key: []byte(strings.Repeat("k", durable.KeySize))})
	if err != nil {
		t.Fatal(err)
	}
	if err := runs.Close(); err != nil {
		t.Fatal(err)
	}
	examine := func(status status, words, remedy string) {
		t.Helper()
		e := &examination{settings: settings{home: home}}
		e.databases(t.Context())
		if len(e.findings) != 1 || e.findings[0].Check != durable.File || e.findings[0].Status != status || !strings.Contains(e.findings[0].Detail, words) || !strings.Contains(e.findings[0].Remedy, remedy) {
			t.Errorf("got %+v", e.findings)
		}
	}
	examine(statusOK, "bytes, intact", "")
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	examine(statusMissing, "runs.key is missing", "restore it from a backup, or move runs.db away")
	write(durable.KeySize - 1)
	examine(statusBroken, "runs.key is damaged", "Do what the detail says")
	write(durable.KeySize)

	change := func(statement string) {
		t.Helper()
		db, err := sql.Open("sqlite", "file:"+filepath.Join(home, durable.File))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	change(`PRAGMA user_version = 3`) // an older one, which it can bring up to date
	examine(statusOK, "bytes, intact", "")
	change(`PRAGMA user_version = 1000`)
	examine(statusBroken, "its schema has version 1000, and this one knows versions up to", "Use the newer version")
	change(`PRAGMA application_id = 7`)
	examine(statusBroken, "not a store of runs", "Restore it from a backup")
}
