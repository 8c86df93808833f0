package durable

import (
	"testing"
	"time"

	"github.com/stilehost/stile/internal/sqlite"
)

// TestGatheredAreWritten has more logs than fit in a round gather while another round is on its way to the disk, and nobody commits. All are written soon.
func TestGatheredAreWritten(t *testing.T) {
	r := functions(t)
	w := &r.writer
	logs := make([]*journal, 100)
	for i := range logs {
		logs[i] = &journal{writer: w, run: &active{runs: r, id: int64(i + 1000), name: "x"}}
	}
	add := func(logs []*journal) {
		for _, j := range logs {
			if err := j.Append([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	}
	waitFor := func(what string, is func() bool) {
		t.Helper()
		end := time.Now().Add(10 * time.Second)
		for {
			w.mu.Lock()
			ok := is()
			w.mu.Unlock()
			if ok {
				return
			}
			if time.Now().After(end) {
				t.Fatal(what)
			}
			<-time.After(time.Millisecond)
		}
	}
	release, held, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		ended <- r.db.Update(r.base, func(*sqlite.Conn) error {
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	add(logs)
	waitFor("nobody asks for a round", func() bool { return w.storing != nil })
	add(logs[:most])
	close(release)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	waitFor("entries wait, and nobody asks for them", func() bool { return len(w.waiting) == 0 && !w.writing })
}
