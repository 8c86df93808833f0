package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/extension/policy"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/turns"
	"github.com/stilehost/stile/toolchain"
)

// limit makes managers that are opened from now on keep so many bytes of versions: for each author, and in all.
func (h *home) limit(perAuthor, all int64) {
	p := policy.Default()
	p.Limits.BuildsPerHour, p.Limits.StoredPerAuthor, p.Limits.Stored = 100_000, perAuthor, all
	h.options.Policy = p
}

// takes returns what the store takes: its pages in use.
func takes(t *testing.T, m *Manager) (bytes int64) {
	t.Helper()
	if err := m.db.View(t.Context(), func(c *sqlite.Conn) error {
		return c.Row(t.Context(), "SELECT page_size * (page_count - freelist_count) FROM pragma_page_size, pragma_page_count, pragma_freelist_count").Scan(&bytes)
	}); err != nil {
		t.Fatal(err)
	}
	return bytes
}

// sound checks that each object is part of a version or is about to go, that each version has what it should, and that all is counted.
func sound(t *testing.T, m *Manager) {
	t.Helper()
	var digests []string
	if err := m.db.View(t.Context(), func(c *sqlite.Conn) error {
		for query, want := range map[string]int{
			`SELECT count(*) FROM object WHERE digest != '' AND (digest IN (SELECT object FROM part)) + (digest IN (SELECT object FROM unfinished)) != 1`:                      0,
			`SELECT count(*) FROM part WHERE object NOT IN (SELECT digest FROM object)`:                                                                                        0,
			`SELECT (SELECT coalesce(sum(bytes), 0) FROM stored) - (SELECT coalesce(sum(source + component), 0) FROM content)`:                                                 0,
			`SELECT count(*) FROM version JOIN content ON version = digest WHERE (version.component = '') != (content.component = 0) OR (record = '') != (content.source = 0)`: 0,
			`SELECT count(*) FROM release JOIN content ON version = digest WHERE state IN ('active', 'pending') AND content.source = 0`:                                        0,
		} {
			var got int
			if err := c.Row(t.Context(), query).Scan(&got); err != nil || got != want {
				t.Errorf("%s: got %d, %v, want %d", query, got, err, want)
			}
		}
		return c.Row(t.Context(), "SELECT json_group_array(digest) FROM version WHERE record != ''").Scan(asJSON{&digests})
	}); err != nil {
		t.Fatal(err)
	}
	for _, digest := range digests {
		v, err := m.Version(t.Context(), digest)
		if err == nil {
			err = m.db.View(t.Context(), func(c *sqlite.Conn) error { _, err := v.component(t.Context(), c); return err })
		}
		if err != nil {
			t.Errorf("version %s: %v", digest, err)
		}
	}
}

// An agent saves again and again. What its versions take stays below the limit, and what is dropped can be built again.
func TestStoredIsBounded(t *testing.T) {
	const limit = 4 << 20
	for name, limits := range map[string][2]int64{"of an author": {limit, 0}, "of all": {0, limit}} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			m := h.open()
			empty := takes(t, m)
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			h.limit(limits[0], limits[1])
			m = h.open()
			var digests []string
			for n := range 15 {
				digests = append(digests, write(t, m, draft("answer", fmt.Sprint(n), "")).Version.Digest)
				stored, err := m.Stored(t.Context())
				if err != nil || stored > limit {
					t.Fatalf("%d: %d bytes are stored, %v", n, stored, err)
				}
				if took := takes(t, m) - empty; took > stored+64<<10 { // rows of releases and entries of the log are not counted
					t.Errorf("%d: it takes %d bytes and counts %d", n, took, stored)
				}
			}
			sound(t, m)
			history, err := m.History(t.Context(), own, "answer")
			if err != nil {
				t.Fatal(err)
			}
			dropped := 0
			for i, r := range history { // the newest first
				if r.Dropped == DroppedComponent {
					dropped++
				}
				if (r.Dropped == DroppedComponent) != (i >= len(history)-dropped) && dropped > 0 && r.Dropped == "" || r.Dropped == DroppedSource {
					t.Errorf("release %d of %d: %q", i, len(history), r.Dropped)
				}
			}
			if dropped < 8 {
				t.Errorf("%d components were dropped", dropped)
			}
			if results, err := m.Test(t.Context(), digests[0]); err != nil || len(results) != 0 {
				t.Errorf("got %+v, %v", results, err)
			}
			if _, err := m.Export(t.Context(), digests[1]); err != nil {
				t.Error(err)
			}
			if v, err := m.Version(t.Context(), digests[0]); err != nil || v.Component != "" {
				t.Errorf("the test stored a component: %+v, %v", v, err)
			}
			r, err := m.Rollback(t.Context(), own, "answer", digests[0], person)
			if err != nil || r.Dropped != "" && r.Dropped != DroppedComponent {
				t.Fatalf("got %+v, %v", r, err)
			}
			says(t, m, "answer_get", "0")
			if v, err := m.Version(t.Context(), digests[0]); err != nil || v.Component == "" {
				t.Errorf("the component is not stored: %v", err)
			}
			if stored, err := m.Stored(t.Context()); err != nil || stored > limit {
				t.Errorf("%d bytes are stored, %v", stored, err)
			}
			sound(t, m)
		})
	}
}

// What was never active goes first, with its source. What was active keeps its source, whoever writes whatever.
func TestDropOrder(t *testing.T) {
	h := newHome(t)
	h.limit(45<<17, 0) // for six versions of 0.92 MiB
	m := h.open()
	ran := []*Written{write(t, m, draft("answer", "1", "")), write(t, m, draft("answer", "2", ""))}
	removed := write(t, m, draft("gone", "3", ""))
	if _, err := m.Remove(t.Context(), own, "gone", Decision{By: "agent:a", Via: "test"}); err != nil {
		t.Fatal(err)
	}
	denied := write(t, m, draft("denied", "4", `{"kv": true}`))
	d := person
	d.Release, d.Digest = denied.Release.ID, denied.Release.Digest
	if _, err := m.Deny(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	var asked []*Written
	for n := range 10 {
		asked = append(asked, write(t, m, draft("asked", fmt.Sprint(n), `{"kv": true}`)))
	}
	sound(t, m)
	is := func(w *Written, want Dropped) {
		t.Helper()
		r, err := m.Release(t.Context(), w.Release.ID)
		if err != nil || r.Dropped != want {
			t.Errorf("release %d is %s, dropped %q, %v; want %q", w.Release.ID, r.State, r.Dropped, err, want)
		}
		if _, err := m.Version(t.Context(), w.Version.Digest); errors.As(err, new(*DroppedError)) != (want == DroppedSource) {
			t.Errorf("release %d: %v", w.Release.ID, err)
		}
	}
	for _, w := range append(ran, removed) {
		is(w, "")
	}
	for _, w := range append(asked[:4], denied) {
		is(w, DroppedSource)
	}
	is(asked[9], "")
	forgot := 0
	entries, err := m.Audit(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Kind == "forget" && e.By == "host" && e.Extension != "" && e.Scope == own.String() {
			forgot++
		}
	}
	if forgot < 5 {
		t.Errorf("%d entries", forgot)
	}
	// Written again, it is whole, and still denied.
	if again := write(t, m, draft("denied", "4", `{"kv": true}`)); again.Version.Digest != denied.Version.Digest || again.Release.State != Pending {
		t.Errorf("got %+v", again.Release)
	}
	if v, err := m.Version(t.Context(), denied.Version.Digest); err != nil || len(v.Files) != 1 || v.Component == "" {
		t.Errorf("got %+v, %v", v, err)
	}
	// Its neighbours go now, components first of what ended first.
	for n := range 10 {
		write(t, m, draft(fmt.Sprint("more", n%3), fmt.Sprint(n), ""))
	}
	is(ran[0], DroppedComponent)
	is(ran[1], "") // active
	is(removed, DroppedComponent)
	is(asked[9], "") // waits
	says(t, m, "answer_get", "2")
	sound(t, m)
}

// When nothing may be dropped, a save is refused and changes nothing, and other authors go on.
func TestStorageError(t *testing.T) {
	h := newHome(t)
	h.limit(3<<20, 6<<20)
	m := h.open()
	var full *StorageError
	n := 0
	for ; full == nil && n < 10; n++ {
		if _, err := m.Write(t.Context(), draft(fmt.Sprint("x", n), fmt.Sprint(n), "")); err != nil && !errors.As(err, &full) {
			t.Fatal(err)
		}
	}
	if full == nil || full.Author != "agent:a" || full.Limit != 3<<20 || full.Over <= 0 {
		t.Fatalf("got %+v after %d", full, n)
	}
	for _, part := range []string{"agent:a", "3 MiB", "limits.storedPerAuthor", "stile ext forget --author agent:a"} {
		if !strings.Contains(full.Error(), part) {
			t.Errorf("%q lacks %q", full, part)
		}
	}
	if f := Sort(full); f.Kind != FailureBudget || f.Value != "3 MiB" {
		t.Errorf("got %+v", f)
	}
	if _, err := m.History(t.Context(), own, fmt.Sprint("x", n-1)); !errors.As(err, new(*NotFoundError)) {
		t.Errorf("got %v", err)
	}
	sound(t, m)
	var refused *StorageError
	for n := range 10 {
		other := draft(fmt.Sprint("y", n), fmt.Sprint(n), "")
		other.Author, other.Scope.Owner = "agent:b", "b"
		if _, err := m.Write(t.Context(), other); err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		} else if err != nil {
			break
		}
	}
	if refused == nil || refused.Author == "agent:a" || strings.Contains(refused.Error(), "agent:a") {
		t.Errorf("got %v", refused)
	}
	if _, err := m.Remove(t.Context(), own, "x0", Decision{By: "agent:a", Via: "test"}); err != nil {
		t.Fatal(err)
	}
	write(t, m, draft(fmt.Sprint("x", n), fmt.Sprint(n), ""))
	sound(t, m)
}

// A rollback that cannot build the component again leaves the active version alone.
func TestRollbackCannotBuild(t *testing.T) {
	h := newHome(t)
	h.limit(3<<20, 0)
	m := h.open()
	first := write(t, m, draft("answer", "0", ""))
	for n := range 5 {
		write(t, m, draft("answer", fmt.Sprint(n+1), ""))
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the engine cannot be fetched")
	var user string
	h.options.Toolchain = func(ctx context.Context) (*toolchain.Toolchain, error) { user = turns.User(ctx); return nil, broken }
	m = h.open()
	if _, err := m.Rollback(t.Context(), own, "answer", first.Version.Digest, person); !errors.Is(err, broken) || !strings.Contains(err.Error(), "dropped to make room") {
		t.Errorf("got %v", err)
	}
	says(t, m, "answer_get", "5")
	if _, _, err := m.load(t.Context(), &active{digest: first.Version.Digest, manifest: first.Version.Manifest}, "agent:b"); !errors.Is(err, broken) || user != "agent:b" {
		t.Errorf("got %v, in the turn of %q", err, user) // a call builds in the turns of its own agent
	}
}

// A person drops the source of what was active. The history remains, and a rollback says why it cannot be.
func TestForget(t *testing.T) {
	h := newHome(t)
	now := time.Now()
	h.options.Now = func() time.Time { return now }
	m := h.open()
	old := write(t, m, draft("answer", "1", ""))
	is := write(t, m, draft("answer", "2", ""))
	now = now.Add(time.Hour)
	list, err := m.Ended(t.Context(), "agent:a", now)
	if err != nil || len(list) != 1 || list[0].Digest != old.Version.Digest || list[0].Name != "answer" || list[0].Author != "agent:a" || list[0].Bytes < 1<<19 {
		t.Fatalf("got %+v, %v", list, err)
	}
	for author, before := range map[string]time.Time{"agent:b": now, "": now.Add(-2 * time.Hour)} {
		if list, err := m.Ended(t.Context(), author, before); err != nil || len(list) > 0 {
			t.Errorf("got %+v, %v", list, err)
		}
	}
	if freed, err := m.Forget(t.Context(), is.Version.Digest, person); err != nil || freed != 0 {
		t.Errorf("of the active version %d bytes were dropped, %v", freed, err)
	}
	if freed, err := m.Forget(t.Context(), old.Version.Digest, person); err != nil || freed != list[0].Bytes {
		t.Errorf("%d bytes, %v", freed, err)
	}
	sound(t, m)
	dropped := (*DroppedError)(nil)
	if _, err := m.Rollback(t.Context(), own, "answer", old.Version.Digest, person); !errors.As(err, &dropped) {
		t.Errorf("got %v", err)
	}
	if _, err := m.Review(t.Context(), old.Release.ID); !errors.As(err, &dropped) {
		t.Errorf("got %v", err)
	}
	says(t, m, "answer_get", "2")
	if entries, err := m.Audit(t.Context(), 2); err != nil || entries[1].Kind != "forget" && entries[0].Kind != "forget" {
		t.Errorf("got %+v, %v", entries, err)
	}
	if _, _, err := m.VerifyAudit(t.Context()); err != nil {
		t.Error(err)
	}
	// Somebody else writes it again, and it is theirs.
	again := draft("answer", "1", "")
	again.Author, again.Scope.Owner = "agent:b", "b"
	if w := write(t, m, again); w.Version.Digest != old.Version.Digest {
		t.Errorf("got %s", w.Version.Digest)
	}
	if v, err := m.Version(t.Context(), old.Version.Digest); err != nil || v.Author != "agent:b" {
		t.Errorf("got %+v, %v", v, err)
	}
	sound(t, m)
}

// A process dies after each transaction of a save that makes room. Nothing is broken, and later saves clear away what it left. A save
// that is cancelled clears it away itself.
func TestDropsEnd(t *testing.T) {
	const limit = 12 << 20
	for name, kill := range map[string]bool{"killed": true, "cancelled": false} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			h.limit(limit, 0)
			now := time.Now()
			h.options.Now = func() time.Time { return now }
			m := h.open()
			write(t, m, draft("answer", "1", ""))
			n := 0
			next := func() Draft { // its objects are written before its version
				n++
				d := draft("asked", fmt.Sprint(n), `{"kv": true}`)
				d.Files["notes.txt"], d.Entry = []byte(strings.Repeat(fmt.Sprintln(n), 2<<20)[:2<<20]), "tool.ts"
				return d
			}
			for end, done := 1, false; !done; end++ {
				for range 3 {
					write(t, m, next())
				}
				ctx, cancel := context.WithCancel(t.Context())
				transactions := 0
				ctx = sqlite.Observe(ctx, func() func(sqlite.Work) {
					transactions++
					return func(sqlite.Work) {
						if transactions != end {
							return
						}
						if cancel(); kill {
							runtime.Goexit()
						}
					}
				})
				var wait sync.WaitGroup
				wait.Go(func() { _, _ = m.Write(ctx, next()) })
				wait.Wait()
				cancel()
				done = transactions < end
				sound(t, m)
				if stored, err := m.Stored(t.Context()); err != nil || stored > limit {
					t.Errorf("ended after %d: %d bytes, %v", end, stored, err)
				}
				if kill {
					now = now.Add(2 * unfinishedFor)
				}
				other := h.open()
				says(t, other, "answer_get", "1")
				if err := other.Close(); err != nil {
					t.Fatal(err)
				}
				if done && end < 6 {
					t.Errorf("%d transactions", transactions)
				}
			}
		})
	}
}

// Two processes at once: one writes versions and drops others, which the other process tests, exports, calls and goes back to.
func TestDropsBesideOthers(t *testing.T) {
	h := newHome(t)
	h.limit(4<<20, 0)
	one, two := h.open(), h.open()
	var digests []string
	for n := range 6 {
		digests = append(digests, write(t, one, draft("answer", fmt.Sprint(n), "")).Version.Digest)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for n := range 12 {
			if _, err := one.Write(t.Context(), draft("answer", fmt.Sprint(100+n), "")); err != nil {
				t.Error(err)
			}
		}
	})
	for i, do := range []func(digest string) error{
		func(digest string) error { _, err := two.Test(t.Context(), digest); return err },
		func(digest string) error { _, err := two.Export(t.Context(), digest); return err },
		func(digest string) error {
			_, err := two.Rollback(t.Context(), own, "answer", digest, person)
			if errors.As(err, new(*NotFoundError)) { // it is active
				return nil
			}
			return err
		},
		func(string) error {
			_, err := two.Call(t.Context(), Call{Viewer: agent, Tool: "answer_get"})
			return err
		},
	} {
		wait.Go(func() {
			for n := range 12 {
				if err := do(digests[n%len(digests)]); err != nil {
					t.Errorf("operation %d: %v", i, err)
				}
			}
		})
	}
	wait.Wait()
	sound(t, two)
	if stored, err := two.Stored(t.Context()); err != nil || stored > 4<<20 {
		t.Errorf("%d bytes, %v", stored, err)
	}
}

// On a full disk, making room fails without damage, or works with what it frees.
func TestDropOnFullDisk(t *testing.T) {
	h := newHome(t)
	h.limit(3<<20, 0)
	m := h.open()
	for n := range 6 {
		write(t, m, draft("answer", fmt.Sprint(n), ""))
	}
	if err := m.db.Update(t.Context(), func(c *sqlite.Conn) error {
		var pages int
		return c.Row(t.Context(), "PRAGMA max_page_count = 1").Scan(&pages)
	}); err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		if _, err := m.Write(t.Context(), draft("answer", fmt.Sprint(100+n), "")); err != nil && !errors.Is(err, abi.ErrUnavailable) {
			t.Fatal(err)
		}
		sound(t, m)
		if _, err := m.Call(t.Context(), Call{Viewer: agent, Tool: "answer_get"}); err != nil {
			t.Fatal(err)
		}
	}
}

// A store from before counts what its versions take.
func TestMigrateStored(t *testing.T) {
	h := newHome(t)
	old := schema
	old.Migrations = schema.Migrations[:10]
	file := filepath.Join(h.options.Dir, File)
	db, err := sqlite.Open(t.Context(), file, old)
	if err != nil {
		t.Fatal(err)
	}
	source := []byte(strings.Repeat("source ", 1000))
	records := map[string]string{ // by the state of their release
		"active":     fmt.Sprintf(`{"manifest": %q, "files": {"a.ts": %q, "b.ts": "absent"}, "author": "agent:a"}`, sha256hex.Of(nil), sha256hex.Of(source)),
		"superseded": fmt.Sprintf(`{"manifest": %q, "files": {"a.ts": %q}, "author": "agent:a"}`, sha256hex.Of(nil), sha256hex.Of(source)),
		"denied":     fmt.Sprintf(`{"manifest": %q, "author": "agent:b"}`, sha256hex.Of(nil)),
		"withdrawn":  "damaged",
	}
	if err := db.Update(t.Context(), func(c *sqlite.Conn) error {
		exec := func(query string, args ...any) {
			if _, err := c.Exec(t.Context(), query, args...); err != nil {
				t.Fatal(err)
			}
		}
		for _, data := range [][]byte{{}, source} {
			exec("INSERT INTO object VALUES (?, ?)", sha256hex.Of(data), data)
		}
		for state, record := range records {
			exec("INSERT INTO object VALUES (?, zeroblob(1000))", "component of "+state)
			exec("INSERT INTO piece VALUES (?, 1, zeroblob(100000))", "component of "+state)
			exec("INSERT INTO version VALUES (?1, 'x', 'component of ' || ?1, ?2)", state, record)
			exec("INSERT INTO release (scope, name, digest, state, author, asked) VALUES ('agent:a', 'x', ?1, ?1, 'agent:a', 0)", state)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	m := h.open()
	for state, want := range map[string]struct {
		author string
		ran    bool
		least  int
	}{"active": {"agent:a", true, 7000}, "superseded": {"agent:a", true, 7000}, "denied": {"agent:b", false, 0}, "withdrawn": {"", false, 0}} {
		var author string
		var ran bool
		var source, component int
		if err := m.db.Read(t.Context(), func(c *sqlite.Conn) error {
			return c.Row(t.Context(), "SELECT author, ran, source, component FROM content WHERE version = ?", state).Scan(&author, &ran, &source, &component)
		}); err != nil || author != want.author || ran != want.ran || source < max(want.least, 1) || source > want.least+5000 || component < 101_000 || component > 102_000 {
			t.Errorf("%s: %q %v %d %d, %v", state, author, ran, source, component, err)
		}
	}
	if freed, err := m.Forget(t.Context(), "superseded", person); err != nil || freed == 0 {
		t.Errorf("%d, %v", freed, err)
	}
	if err := m.db.Read(t.Context(), func(c *sqlite.Conn) error { _, err := object(t.Context(), c, sha256hex.Of(source)); return err }); err != nil {
		t.Errorf("what another version has is gone: %v", err)
	}
}
