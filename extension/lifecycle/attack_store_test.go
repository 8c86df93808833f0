package lifecycle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/sqlite"
)

// Two processes write, call and revoke one extension at once. No operation fails because of the store, at most one version is
// active, the log is complete, and nothing is left running.
func TestEverythingAtOnce(t *testing.T) {
	h := newHome(t)
	h.policyOf(`{"limits": {"buildsPerHour": 1000}}`)
	h.options.Loaded = 1
	one := h.open()
	write(t, one, draft("answer", "0", ""))
	leaks := goleak.IgnoreCurrent()
	two, three := h.open(), h.open()
	var wait sync.WaitGroup
	for i, m := range []*Manager{two, three} {
		wait.Go(func() {
			for n := range 8 {
				w := write(t, m, draft("answer", fmt.Sprint(i*100+n), ""))
				d := person
				d.Release, d.Digest = w.Release.ID, w.Release.Digest
				if _, err := m.Approve(t.Context(), d); err != nil && !errors.As(err, new(*StateError)) {
					t.Error(err)
				}
			}
		})
		wait.Go(func() {
			for n := range 4 {
				if _, err := m.Revoke(t.Context(), own, "answer", person); err != nil && !errors.As(err, new(*NotFoundError)) {
					t.Error(err)
				}
				write(t, m, draft("other", fmt.Sprint(n), ""))
			}
		})
		for range 2 {
			wait.Go(func() {
				for range 50 {
					_, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "answer_get"})
					if err != nil && !errors.As(err, new(*RevokedError)) && !errors.As(err, new(*UnknownToolError)) {
						t.Error(err)
					}
					if _, err := m.List(t.Context(), agent); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wait.Wait()
	for _, m := range []*Manager{two, three} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := goleak.Find(leaks); err != nil {
		t.Error(err)
	}
	history, err := one.History(t.Context(), own, "answer")
	if err != nil {
		t.Fatal(err)
	}
	active := 0
	for _, r := range history {
		if r.State == Active {
			active++
		}
	}
	if active > 1 {
		t.Errorf("%d are active", active)
	}
	if _, _, err := one.VerifyAudit(t.Context()); err != nil {
		t.Error(err)
	}
}

// A caller that has disconnected does not wait.
func TestCancelledEverywhere(t *testing.T) {
	m := newHome(t).open()
	w := write(t, m, draft("answer", "1", ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := person
	d.Release, d.Digest = w.Release.ID, w.Release.Digest
	user := extension.Scope{Kind: extension.User, Owner: "tom"}
	one := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"Write":       one(m.Write(ctx, draft("answer", "2", ""))),
		"Call":        one(m.Call(ctx, Call{Viewer: agent, Tool: "answer_get"})),
		"List":        one(m.List(ctx, agent)),
		"Pending":     one(m.Pending(ctx)),
		"Active":      one(m.Active(ctx)),
		"History":     one(m.History(ctx, own, "answer")),
		"Release":     one(m.Release(ctx, w.Release.ID)),
		"Find":        one(m.Find(ctx, agent, "answer")),
		"FindVersion": one(m.FindVersion(ctx, agent, "answer", w.Version.Digest)),
		"Version":     one(m.Version(ctx, w.Version.Digest)),
		"Search":      one(m.Search(ctx, agent, "value", 5)),
		"Prune":       one(m.Prune(ctx, own, 0)),
		"Review":      one(m.Review(ctx, w.Release.ID)),
		"Audit":       one(m.Audit(ctx, 5)),
		"Test":        one(m.Test(ctx, w.Version.Digest)),
		"Export":      one(m.Export(ctx, w.Version.Digest)),
		"Approve":     one(m.Approve(ctx, d)),
		"Deny":        one(m.Deny(ctx, d)),
		"Promote":     one(m.Promote(ctx, own, user, "answer", "agent:a", "test")),
		"Rollback":    one(m.Rollback(ctx, own, "answer", w.Version.Digest, d)),
		"Remove":      one(m.Remove(ctx, own, "answer", d)),
		"Revoke":      one(m.Revoke(ctx, own, "answer", d)),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	says(t, m, "answer_get", "1")
}

// On a full disk, writes fail completely, and existing data stays intact.
func TestFullDisk(t *testing.T) {
	h := newHome(t)
	m := h.open()
	write(t, m, draft("answer", "1", ""))
	var pages int
	err := m.db.Update(t.Context(), func(c *sqlite.Conn) error {
		return c.Row(t.Context(), "PRAGMA max_page_count = 1").Scan(&pages) // it becomes as many as there are
	})
	if err != nil {
		t.Fatal(err)
	}
	before, _, err := m.VerifyAudit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if w, err := m.Write(t.Context(), draft("answer", `"`+strings.Repeat("x", 1<<16)+`"`, "")); !errors.Is(err, abi.ErrUnavailable) {
		t.Fatalf("got %+v, %v", w, err)
	}
	says(t, m, "answer_get", "1")
	if history, err := m.History(t.Context(), own, "answer"); err != nil || len(history) != 1 || history[0].State != Active {
		t.Errorf("got %+v, %v", history, err)
	}
	if after, _, err := m.VerifyAudit(t.Context()); err != nil || after < before {
		t.Errorf("got %d, %v", after, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = h.open() // there is room again
	write(t, m, draft("answer", "2", ""))
	says(t, m, "answer_get", "2")
}

// A process that is killed while it writes loses no acknowledged data, and leaves a consistent store.
func TestKill(t *testing.T) {
	const variable = "STILE_TEST_KILL"
	h := newHome(t)
	if dir := os.Getenv(variable); dir != "" { // the process that is killed
		h.options.Dir = dir
		h.policyOf(`{"limits": {"buildsPerHour": 100000, "storedPerAuthor": "2MiB"}}`) // from the third on, it makes room
		m := h.open()
		for n := 1; ; n++ {
			write(t, m, draft("answer", fmt.Sprint(n), ""))
			fmt.Println("written", n)
		}
	}
	for kill := 1; kill <= 4; kill++ {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKill$", "-test.count=1")
		child.Env = append(os.Environ(), variable+"="+h.options.Dir, "TMPDIR="+t.TempDir())
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		written := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if _, err := fmt.Sscanf(lines.Text(), "written %d", &written); err == nil && written == 3*kill {
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := child.Wait(); err == nil || written < 3*kill {
			t.Fatalf("it wrote %d and ended with %v", written, err)
		}
		m := h.open()
		r, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "answer_get"})
		if got := string(r.Output); err != nil || got != fmt.Sprint(written) && got != fmt.Sprint(written+1) {
			t.Errorf("got %s, %v, want %d or the next", got, err, written)
		}
		if _, _, err := m.VerifyAudit(t.Context()); err != nil {
			t.Error(err)
		}
		sound(t, m)
		if stored, err := m.Stored(t.Context()); err != nil || stored > 2<<20 {
			t.Errorf("%d bytes are stored, %v", stored, err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// If the store cannot be written, the process that receives a revocation still ends the extension.
func TestRevokeWithoutStore(t *testing.T) {
	h := newHome(t)
	m := h.open()
	write(t, m, draft("notes", "1", ""))
	write(t, m, draft("other", "2", ""))
	if err := m.db.Close(); err != nil {
		t.Fatal(err)
	}
	unsaved := (*UnsavedError)(nil)
	if _, err := m.Revoke(t.Context(), own, "notes", Decision{By: "user:tom", Via: "web", Reason: "it leaks"}); !errors.As(err, &unsaved) || !errors.Is(err, abi.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	revoked := (*RevokedError)(nil)
	if _, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "notes_get"}); !errors.As(err, &revoked) || revoked.Reason != "it leaks" {
		t.Errorf("got %v", err)
	}
	if _, err := m.Revoke(t.Context(), own, "absent", Decision{By: "user:tom", Via: "web"}); !errors.Is(err, abi.ErrUnavailable) || errors.As(err, &unsaved) {
		t.Errorf("got %v", err)
	}
}

// A revocation on a full disk uses the reserved space, once.
func TestRevokeSpendsReserve(t *testing.T) {
	h := newHome(t)
	m := h.open()
	reserve := string(h.options.reserve())
	full := abi.Errorf(abi.CodeUnavailable, "the disk is full")
	tries := 0
	take := func() (Release, error) {
		tries++
		if _, err := os.Stat(reserve); err == nil {
			return Release{}, full
		}
		return Release{State: Revoked}, nil
	}
	if r, err := m.insist(t.Context(), own, "notes", "", take); err != nil || r.State != Revoked || tries != 2 {
		t.Errorf("got %+v, %v after %d tries", r, err, tries)
	}
	tries = 0
	if _, err := m.insist(t.Context(), own, "notes", "", func() (Release, error) { tries++; return Release{}, full }); !errors.Is(err, full) || tries != 1 {
		t.Errorf("without a reserve: %v after %d tries", err, tries)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	h.open()
	if _, err := os.Stat(reserve); err != nil {
		t.Errorf("it is not held again: %v", err)
	}
}
