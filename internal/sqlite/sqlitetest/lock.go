// Package sqlitetest checks that no operation on a database file holds the shared write lock for long, and keeps the files of tests in memory.
package sqlitetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stilehost/stile/internal/sqlite"
)

const (
	fileVariable = "STILE_TEST_BESIDE"
	// mostPages and mostWritten are the most pages that one transaction may look up and write: some 50 ms of work on a common machine.
	mostPages, mostWritten = 32_000, 1000
)

// Beside makes a test the second process of [HoldNoLock]. As part of the whole suite, it does nothing. open opens the database and
// returns a function that writes to it once.
func Beside(t *testing.T, open func(file string) (write func(n int) error, close func() error, err error)) {
	file := os.Getenv(fileVariable)
	if file == "" {
		return
	}
	write, end, err := open(file)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(told)
	}()
	for n := 1; ; n++ {
		select {
		case <-told:
			if err := end(); err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
		if err := write(n); err != nil {
			t.Fatalf("write %d: %v", n, err)
		}
		fmt.Println("wrote", n)
	}
}

// Operation is something that writes to the database.
type Operation struct {
	Name string
	// Least is how many transactions at least show that the work was done in parts.
	Least int
	// Rows is the most rows that one transaction may change.
	Rows int64
	Do   func(ctx context.Context) error
	// Err is what Do returns.
	Err error
}

// HoldNoLock runs each operation while a second process, the test named beside, writes to the same file without a pause. Each
// transaction of an operation must change a bounded number of rows, look up and write a bounded number of pages, and let the second
// process write before the next one begins.
func HoldNoLock(t *testing.T, db *sqlite.DB, file, beside string, operations []Operation) {
	t.Helper()
	second := start(t, file, beside)
	leaveLog(t, db)
	for _, o := range operations {
		t.Run(o.Name, func(t *testing.T) {
			transactions, most := 0, sqlite.Work{}
			ctx := sqlite.Observe(t.Context(), func() func(sqlite.Work) {
				return func(w sqlite.Work) {
					transactions++
					most = sqlite.Work{Rows: max(most.Rows, w.Rows), Pages: max(most.Pages, w.Pages), Written: max(most.Written, w.Written)}
					second.write(t)
				}
			})
			if err := o.Do(ctx); !errors.Is(err, o.Err) {
				t.Fatalf("got %v, want %v", err, o.Err)
			}
			t.Logf("%d transactions; in one at most %d rows, %d pages, %d pages written", transactions, most.Rows, most.Pages, most.Written)
			if transactions < max(o.Least, 1) {
				t.Errorf("%d transactions, want at least %d", transactions, o.Least)
			}
			if most.Rows > o.Rows {
				t.Errorf("one of %d transactions changed %d rows, want at most %d", transactions, most.Rows, o.Rows)
			}
			if most.Pages > mostPages || most.Written > mostWritten {
				t.Errorf("one of %d transactions looked up %d pages, another wrote %d; want at most %d and %d", transactions, most.Pages, most.Written, mostPages, mostWritten)
			}
		})
	}
	if err := second.end(); err != nil {
		t.Errorf("the second process: %v", err)
	}
}

// leaveLog lets other connections copy the log into the database. That takes no lock that a writer needs.
func leaveLog(t *testing.T, db *sqlite.DB) {
	t.Helper()
	if err := db.Update(t.Context(), func(c *sqlite.Conn) error {
		_, err := c.Exec(t.Context(), `PRAGMA wal_autocheckpoint = 0`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// process is the second process.
type process struct {
	cmd   *exec.Cmd
	input io.WriteCloser
	lines chan string
}

func start(t *testing.T, file, test string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.count=1"), lines: make(chan string)} //nolint:gosec // this very test
	p.cmd.Env = append(os.Environ(), fileVariable+"="+file)
	p.cmd.Stderr = os.Stderr
	var err error
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	latest := make(chan string)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			latest <- lines.Text()
		}
		close(latest)
	}()
	go func() { // only the latest line counts, and the writer need not wait until it is read
		line, open := <-latest
		for open {
			select {
			case line, open = <-latest:
			case p.lines <- line:
				line, open = <-latest
			}
		}
		close(p.lines)
	}()
	t.Cleanup(func() {
		_ = p.input.Close()
		for range p.lines {
		}
		_ = p.cmd.Wait()
	})
	p.write(t)
	return p
}

// write returns when the process has written something that it began after the call.
func (p *process) write(t *testing.T) {
	t.Helper()
	for range 3 { // one line from before, one from meanwhile, one from now
		if line, ok := <-p.lines; !ok {
			t.Fatalf("the second process has ended: %s", line)
		}
	}
}

func (p *process) end() error {
	err := p.input.Close()
	for range p.lines {
	}
	return errors.Join(err, p.cmd.Wait())
}
