package lifecycle

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// memory is an archive that may fail.
type memory struct {
	bytes.Buffer
	fails error
	sync  func() error // replaces fails
}

func (m *memory) Sync() error {
	if m.sync != nil {
		return m.sync()
	}
	return m.fails
}

// Archived entries are verified together with the log. Without the archive, the log reports that they are missing. No entry moves to an
// archive that is not durable.
func TestArchiveAudit(t *testing.T) {
	h := newHome(t)
	now := time.Now()
	h.options.Now = func() time.Time { return now }
	m := h.open()
	verify := func(want int64, archives ...string) error {
		t.Helper()
		var readers []io.Reader
		for _, a := range archives {
			readers = append(readers, strings.NewReader(a))
		}
		n, _, err := m.VerifyAudit(t.Context(), readers...)
		if err == nil && n != want {
			t.Errorf("there are %d entries, want %d", n, want)
		}
		return err
	}
	archive := func(want int64) string {
		t.Helper()
		var to memory
		if n, err := m.ArchiveAudit(t.Context(), now, person, &to); err != nil || n != want {
			t.Fatalf("moved %d, %v; want %d", n, err, want)
		}
		return to.String()
	}
	write(t, m, draft("one", "1", ""))
	if text := archive(0); text != "" {
		t.Errorf("what is of today is moved: %s", text)
	}
	now = now.Add(48 * time.Hour)
	broken := &memory{fails: errors.New("the disk is full")}
	if n, err := m.ArchiveAudit(t.Context(), now, person, broken); !errors.Is(err, broken.fails) {
		t.Errorf("moved %d, %v", n, err)
	}
	if err := verify(2); err != nil {
		t.Error(err)
	}
	first := archive(2)
	write(t, m, draft("two", "2", ""))
	now = now.Add(48 * time.Hour)
	second := archive(3)
	if entries, hash, err := m.Archived(t.Context()); err != nil || entries != 5 || !strings.Contains(second, hex.EncodeToString(hash)) {
		t.Errorf("got %d, %x, %v", entries, hash, err)
	}
	for _, archives := range [][]string{nil, {first, second}, {first + second}} {
		if err := verify(6, archives...); err != nil {
			t.Errorf("with %d archives: %v", len(archives), err)
		}
	}
	if list, err := m.Audit(t.Context(), 10); err != nil || len(list) != 1 || list[0].Kind != "archive" || list[0].By != person.By || list[0].Reason != "entries 3 to 5" {
		t.Errorf("got %+v, %v", list, err)
	}
	for name, archives := range map[string][]string{
		"one is missing": {second}, "the last is missing": {first}, "another order": {second, first}, "changed": {strings.Replace(first, `"by":"`, `"by":"x`, 1), second},
		"another entry beside it": {strings.Replace(first, `"entry":`, `"entry":{"kind":"call","by":"user:eve"},"Entry":`, 1), second},
		"cut":                     {first[:len(first)-2], second}, "no entries": {"hello\n"}, "a line without end": {strings.Repeat("x", 2<<20)}, "empty": {""}, "a line less": {first[strings.IndexByte(first, '\n')+1:], second},
	} {
		if err := verify(0, archives...); !errors.As(err, new(*TamperedError)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	alter(t, m, "UPDATE head SET first = 4")
	if err := verify(0); !errors.As(err, new(*TamperedError)) {
		t.Errorf("got %v", err)
	}
	alter(t, m, "UPDATE head SET first = 5")
	alter(t, m, "UPDATE head SET first = 6, first_hash = hash")
	alter(t, m, "DELETE FROM audit")
	if err := verify(0); !errors.As(err, new(*TamperedError)) {
		t.Errorf("the log was emptied by hand: %v", err)
	}
}

// While an archive is written, others can write to the store. Of two archives at once, one takes the entries.
func TestArchiveAuditConcurrently(t *testing.T) {
	h := newHome(t)
	now := time.Now()
	h.options.Now = func() time.Time { return now }
	m := h.open()
	write(t, m, draft("one", "1", ""))
	now = now.Add(48 * time.Hour)
	var other memory
	slow := &memory{sync: func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := m.Refuse(ctx, draft("two", "2", ""), "no"); err != nil {
			t.Errorf("others cannot write: %v", err)
		}
		_, err := m.ArchiveAudit(ctx, now, person, &other)
		return err
	}}
	if n, err := m.ArchiveAudit(t.Context(), now, person, slow); n != 0 || err == nil {
		t.Errorf("moved %d twice, %v", n, err)
	}
	if n, _, err := m.VerifyAudit(t.Context(), &other.Buffer); err != nil || n != 4 {
		t.Errorf("there are %d entries, %v", n, err)
	}
}
