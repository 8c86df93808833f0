package lifecycle

import (
	"errors"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/disktest"
)

// A full disk prevents no revocation, in this process or in the next. The disk is a real one of 8 MB, which
// this test mounts in a separate user namespace.
func TestRevokeOnFullDisk(t *testing.T) {
	if !disktest.Mounts(t) {
		return
	}
	for name, anew := range map[string]bool{"in a process that runs": false, "in a new process": true} {
		t.Run(name, func(t *testing.T) { revokeOnFullDisk(t, anew) })
	}
}

// revokeOnFullDisk revokes with the manager that filled the disk, or with one that is opened when the disk is full.
func revokeOnFullDisk(t *testing.T, anew bool) {
	h := newHome(t)
	disktest.Mount(t, h.options.Dir, "size=8m")
	m := h.open()
	write(t, m, draft("notes", "1", ""))
	says(t, m, "notes_get", "1")
	for range 40 { // opening takes some room, and gives it back before others take it
		if !anew {
			break
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		disktest.Fill(t, h.options.Dir)
		m = h.open()
	}
	disktest.Fill(t, h.options.Dir)
	if _, err := m.Write(t.Context(), draft("other", "2", "")); !errors.Is(err, abi.ErrUnavailable) {
		t.Fatalf("the disk is not full: %v", err)
	}
	r, err := m.Revoke(t.Context(), own, "notes", Decision{By: "user:tom", Via: "terminal"})
	if err != nil || r.State != Revoked {
		t.Fatalf("got %+v, %v", r, err)
	}
	disktest.Fill(t, h.options.Dir)
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	m = h.open() // while the disk is still full
	if history, err := m.History(t.Context(), own, "notes"); err != nil || history[0].State != Revoked {
		t.Errorf("got %+v, %v", history, err)
	}
	if _, _, err := m.VerifyAudit(t.Context()); err != nil {
		t.Error(err)
	}
}
