package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stilehost/stile/host/internal/codecheck"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/child"
	"github.com/stilehost/stile/internal/turns"
)

// helper runs this program as a compiler that works or misbehaves in the given way.
func helper(does string) []string { return []string{os.Args[0], "as-compiler", does} }

func init() {
	if len(os.Args) != 3 || os.Args[1] != "as-compiler" {
		return
	}
	tight := CompileCost{100 * time.Millisecond, mib}.limits()
	switch os.Args[2] {
	case "compile":
		_ = Compile(os.Stdin, os.Stdout) // it has reported the error
	case "spin":
		_ = child.Confine(tight)
		for {
			runtime.Gosched()
		}
	case "eat":
		_ = child.Confine(tight)
		for all := [][]byte{}; ; all = append(all, make([]byte, mib)) { // writing to it would take too much of the processor's time
			runtime.KeepAlive(all)
		}
	case "fill":
		limits := tight
		limits.Time = time.Minute
		_ = child.Confine(limits)
		for all := [][]byte{}; ; all = append(all, bytes.Repeat([]byte{1}, mib)) {
			runtime.KeepAlive(all)
		}
	case "starve": // the engine aborts
		wasm, _ := io.ReadAll(os.Stdin)
		_ = child.Confine(child.Limits{Time: time.Minute, Memory: 128 * mib})
		_, _ = compileCode(wasm)
	case "block": // on long compilations
		wasm, _ := io.ReadAll(os.Stdin)
		if takes, err := estimated(codecheck.Guarded(wasm)); err == nil && takes.Time <= longCompile {
			_ = Compile(bytes.NewReader(wasm), os.Stdout)
			os.Exit(0)
		}
		_, _ = os.Stdout.Read(make([]byte, 1))
		select {}
	case "chatter":
		for range 20 {
			_, _ = os.Stderr.Write(bytes.Repeat([]byte("words\x1b "), 10_000))
		}
		os.Exit(3)
	case "measure":
		measureHere()
	case "write nothing":
	case "write something":
		_, _ = os.Stdout.WriteString("something")
	case "write code":
		_, _ = os.Stdout.WriteString("ccode of another version")
	case "open": // what it can do once it is confined
		_ = child.Confine(tight)
		_, err := os.Open("/etc/passwd")
		_, _ = os.Stdout.WriteString("r" + err.Error() + " " + strings.Join(os.Environ(), " "))
	}
	os.Exit(0)
}

func newHostWith(t *testing.T, o Options) *Host {
	t.Helper()
	h, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// TestCompiler has a process compile code whose estimate is over a second. The host uses the result as if it had compiled the code itself.
func TestCompiler(t *testing.T) {
	h := newHostWith(t, Options{Compiler: helper("compile"), CacheDir: t.TempDir(), KeyDir: t.TempDir()})
	wasm := bombNamed(t, "chains of floats", 9000, 30)
	if takes, err := EstimateCompile(wasm); err != nil || takes.Time < longCompile {
		t.Fatalf("%v, %v", takes, err)
	}
	for _, from := range []string{"the compiler", "the cache"} {
		var refused *LoadError
		if _, err := h.Load(t.Context(), wasm); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "is not exported") {
			t.Errorf("from %s: %v", from, err)
		}
		h.options.Compiler = helper("write nothing") // it is not started again
	}
}

func TestCompilerFails(t *testing.T) {
	wasm := bombNamed(t, "empty functions", 40_000, 0)
	for _, c := range []struct{ does, limit, want string }{
		{"spin", "processor time", "reached its limit of processor time (allowed: 0.2 s of processor time and 50 MiB"},
		{"eat", "memory", "reached its limit of memory"},
		{"fill", "memory", "reached its limit of memory"},
		{"starve", "memory", "reached its limit of memory"},
		{"chatter", "", `exit status 3: words\x1b words`},
		{"write nothing", "", "it did not write code"},
		{"write something", "", "it did not write code"},
		{"write code", "", "its version differs from this program"},
	} {
		t.Run(c.does, func(t *testing.T) {
			h := newHostWith(t, Options{Compiler: helper(c.does)})
			_, err := h.compileOutside(t.Context(), wasm, CompileCost{100 * time.Millisecond, mib})
			failed, ok := errors.AsType[*CompilerError](err)
			if !ok || failed.Limit != c.limit || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2*child.MaxWords {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if _, refused := errors.AsType[*LoadError](refusal(err)); refused != (c.limit != "") {
				t.Errorf("refused: %t", refused)
			}
		})
	}
	t.Run("is not there", func(t *testing.T) {
		h := newHostWith(t, Options{Compiler: []string{"/nowhere/stile"}})
		_, err := h.Load(t.Context(), wasm)
		if failed, ok := errors.AsType[*CompilerError](err); !ok || !strings.Contains(failed.Reason, "/nowhere/stile: no such file") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("may not", func(t *testing.T) {
		h := newHostWith(t, Options{Compiler: helper("open")})
		_, err := h.compileOutside(t.Context(), wasm, CompileCost{100 * time.Millisecond, mib})
		if err == nil || !strings.Contains(err.Error(), "too many open files RAYON_NUM_THREADS=4 WASMTIME_BACKTRACE_DETAILS=") || strings.Contains(err.Error(), "PATH") {
			t.Errorf("got %v", err)
		}
	})
}

// TestCompilerDoesNotFit has a process compile code for which this process's pool has no room.
func TestCompilerDoesNotFit(t *testing.T) {
	h := newHostWith(t, Options{Compiler: helper("compile")})
	for part, want := range map[string]string{
		"(memory 2049)":            "memory has a minimum byte size of 134283264 which exceeds the limit of 0x8000000 bytes",
		"(table 50000000 funcref)": "minimum element size of 50000000 which exceeds the limit of 100000",
	} {
		wasm, err := wasmtime.WAT("(component (core module $m " + part + ") (core instance (instantiate $m)))")
		if err != nil {
			t.Fatal(err)
		}
		_, inside := h.Load(t.Context(), wasm)
		_, outside := h.compileOutside(t.Context(), wasm, CompileCost{time.Second, 512 * mib})
		for _, err := range []error{inside, refusal(outside)} {
			if refused, ok := errors.AsType[*LoadError](err); !ok || !strings.Contains(refused.Reason, want) {
				t.Errorf("%s: got %v, want %q", part, err, want)
			}
		}
	}
}

// TestCompilerEnds stops a compiler that never ends, through the context or through the host.
func TestCompilerEnds(t *testing.T) {
	h := newHostWith(t, Options{Compiler: helper("block")})
	wasm := bombNamed(t, "chains of floats", 9000, 30)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := h.Load(ctx, wasm); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with its context: %v", err)
	}
	ended := make(chan error)
	go func() {
		_, err := h.Load(t.Context(), wasm)
		ended <- err
	}()
	if err := h.compiling.long.Take(ctx); err == nil { // the first one has ended
		h.compiling.long.Give()
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("with the host: %v", err)
	}
}

// TestLanes loads a trivial component while ten bombs wait or compile, and cancels a waiting one.
func TestLanes(t *testing.T) {
	h := newHostWith(t, Options{Compiler: helper("block")})
	bombs, stop := context.WithCancel(t.Context())
	defer stop()
	const many = 10
	ended := make(chan error, many+1)
	for i := range many {
		wasm := bombNamed(t, "chains of floats", 9000+i, 30)
		go func() {
			_, err := h.Load(bombs, wasm)
			ended <- err
		}()
	}
	for h.compiling.long.TryTake("", 1) { // until one is compiling
		h.compiling.long.Give()
		runtime.Gosched()
	}
	go func() { // also if it will only be refused: checking its types takes memory
		_, err := h.Load(bombs, cat(componentOf(), sectionOf(8, slices.Repeat([][]byte{{1, 0, 0, 0}}, 300_000)...)))
		ended <- err
	}()
	load := func(ctx context.Context, n int) error {
		_, err := h.Load(ctx, bombNamed(t, "chains of floats", n, 30))
		return err
	}
	for _, n := range []int{1, 3000} { // short, longer
		var refused *LoadError
		if err := load(t.Context(), n); !errors.As(err, &refused) || !strings.Contains(refused.Reason, "is not exported") {
			t.Errorf("beside bombs: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := load(ctx, 9500); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("another bomb: %v", err)
	}
	select {
	case err := <-ended:
		t.Fatalf("a bomb has ended: %v", err)
	default:
	}
	stop()
	for range many + 1 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// TestUsersShareLanes compiles for two users in turn, though one asked three times before the other.
func TestUsersShareLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lane := newLanes().long
		if err := lane.Take(t.Context()); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, user := range []string{"greedy", "greedy", "greedy", "other"} {
			go func() {
				err := within(turns.For(t.Context(), user), lane, func() error { order = append(order, user); return nil })
				if err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		lane.Give()
		synctest.Wait()
		if want := []string{"greedy", "other", "greedy", "greedy"}; !slices.Equal(order, want) {
			t.Errorf("got %v", order)
		}
	})
}
