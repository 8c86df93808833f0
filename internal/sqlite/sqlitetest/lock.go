// Package sqlitetest checks that no operation on a database file holds the shared write lock for long, and keeps the files of tests in memory.
package sqlitetest

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stilehost/stile/internal/sqlite"
	"github.com/stilehost/stile/internal/usagetest"
)

const (
	fileVariable = "STILE_TEST_BESIDE"
	// unit is how many bytes the reference transaction writes, in rows of 64 KiB: some 5 ms of work.
	unit = 2 << 20
	// longest is the largest ratio of a transaction's work to that of the reference transaction. It stands for some 50 ms, and that much
	// again: measurements vary on a busy machine, and the many small rows of an index slow down more than the large rows of the reference.
	longest = 20
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
// transaction of an operation must change a bounded number of rows, take a bounded processor time, and let the second process write
// before the next one begins.
func HoldNoLock(t *testing.T, db *sqlite.DB, file, beside string, operations []Operation) {
	t.Helper()
	second := start(t, file, beside)
	most := longest * reference(t)
	leaveLog(t, db)
	for _, o := range operations {
		t.Run(o.Name, func(t *testing.T) {
			transactions, rows, work := 0, int64(0), time.Duration(0)
			ctx := sqlite.Observe(t.Context(), func() func(int64) {
				began := usagetest.Processor()
				return func(changed int64) {
					transactions++
					rows, work = max(rows, changed), max(work, usagetest.Processor()-began)
					second.write(t)
				}
			})
			runtime.GC()
			defer debug.SetGCPercent(debug.SetGCPercent(-1)) // garbage collection is not work of the transaction
			if err := o.Do(ctx); !errors.Is(err, o.Err) {
				t.Fatalf("got %v, want %v", err, o.Err)
			}
			t.Logf("%d transactions; in one at most %d rows, %v of %v", transactions, rows, work, most)
			if transactions < max(o.Least, 1) {
				t.Errorf("%d transactions, want at least %d", transactions, o.Least)
			}
			if rows > o.Rows {
				t.Errorf("one of %d transactions changed %d rows, want at most %d", transactions, rows, o.Rows)
			}
			if work > most {
				t.Errorf("one of %d transactions took %v of the processor, want at most %v", transactions, work, most)
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

// reference is the processor time of a transaction of known size.
func reference(t *testing.T) time.Duration {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "reference.db"), sqlite.Schema{Kind: "reference", ID: 1, Migrations: []string{
		`CREATE TABLE row (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT`,
	}})
	if err != nil {
		t.Fatal(err)
	}
	leaveLog(t, db)
	row := make([]byte, 64<<10)
	_, _ = rand.Read(row)
	took := make([]time.Duration, 7)
	for i := range took {
		began := usagetest.Processor()
		if err := db.Update(t.Context(), func(c *sqlite.Conn) error {
			for range unit / len(row) {
				if _, err := c.Exec(t.Context(), `INSERT INTO row (bytes) VALUES (?)`, row); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		took[i] = usagetest.Processor() - began
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return slices.Min(took)
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
