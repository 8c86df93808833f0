package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/stilehost/stile/host/internal/codecheck"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/child"
	"github.com/stilehost/stile/internal/printable"
)

const (
	maxCompiled = 256 * mib // of compiled code; SpiderMonkey has 43
	// What any compilation may take besides, and what its process may reserve for its own stacks and heaps.
	anyTime         = 50 * time.Millisecond
	anyMemory       = 24 * mib
	processReserved = 512 * mib
)

// CompilerError reports a compilation that failed in the process that Options.Compiler names.
type CompilerError struct {
	// Limit is the limit that the process reached, "processor time" or "memory". It is empty for other failures.
	Limit string
	// Allowed are the process's limits: twice the estimated time, and 256 MiB for each estimated second, at most 2 GiB, plus 50 ms and
	// 24 MiB.
	Allowed CompileCost
	Reason  string
}

func (e *CompilerError) Error() string {
	if e.Limit != "" {
		return fmt.Sprintf("its code takes too long to compile: the compiler reached its limit of %s (allowed: %v)", e.Limit, e.Allowed)
	}
	return "the compiler, the program of Options.Compiler, failed: " + e.Reason
}

// limits returns the limits of a process that compiles a component with this estimate.
func (c CompileCost) limits() child.Limits {
	memory := min(int64(c.Time.Seconds()*codecheck.MemoryPerSecond), codecheck.MaxMemory)
	return child.Limits{Time: 2*c.Time + anyTime, Memory: memory + processReserved, Resident: memory + anyMemory}
}

// Compile is the whole work of a program that Options.Compiler names, with its standard input and output. It reads a component,
// limits the process according to the component's estimate, and writes the compiled code or the reason for failing. After reading,
// the process can neither open nor write files.
func Compile(in io.Reader, out io.Writer) error {
	code, err := compileConfined(in)
	if err != nil {
		code = append([]byte{isRefusal}, err.Error()...)
	} else {
		code = append([]byte{isCode}, code...)
	}
	if _, err := out.Write(code); err != nil {
		return fmt.Errorf("write code: %w", err)
	}
	return nil
}

// The first byte of a compiler's output says what follows.
const isCode, isRefusal = 'c', 'r'

func compileConfined(in io.Reader) ([]byte, error) {
	wasm, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("read component: %w", err)
	}
	takes, err := estimated(codecheck.Guarded(wasm))
	if err != nil {
		return nil, err
	}
	if err := child.Confine(takes.limits()); err != nil {
		return nil, fmt.Errorf("limit the compiler: %w", err)
	}
	return compileCode(wasm)
}

func compileCode(wasm []byte) ([]byte, error) {
	engine := wasmtime.NewCompiler()
	defer engine.Close()
	c, err := engine.Compile(wasm)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Serialize()
}

// compileOutside compiles a component in a separate process, which ends with ctx, with the host and with this process.
func (h *Host) compileOutside(ctx context.Context, wasm []byte, takes CompileCost) (*wasmtime.Component, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.closing, cancel)() //nolint:contextcheck // it ends with the host, too
	limits := takes.limits()
	// The engine must read the same environment in both processes.
	const details = "WASMTIME_BACKTRACE_DETAILS"
	env := []string{"RAYON_NUM_THREADS=" + strconv.Itoa(codecheck.Threads), details + "=" + os.Getenv(details)}
	var written []byte
	err := child.Run(ctx, h.options.Compiler, env, limits, func(to io.WriteCloser, from io.Reader) error {
		_, _ = to.Write(wasm) // a program that does not read it says why
		_ = to.Close()
		var err error
		written, err = io.ReadAll(io.LimitReader(from, maxCompiled+1))
		return err
	})
	kind, code := byte(0), written
	if len(code) > 0 {
		kind, code = code[0], code[1:]
	}
	said := string(code[:min(len(code), child.MaxWords)])
	failed := func(limit, reason string) error {
		return &CompilerError{limit, CompileCost{limits.Time, limits.Resident}, printable.Short(reason, child.MaxWords)}
	}
	failure, _ := errors.AsType[*child.Error](err)
	switch {
	case h.closing.Err() != nil:
		return nil, ErrClosed
	case failure != nil:
		return nil, failed(failure.Limit, failure.Reason)
	case err != nil:
		return nil, err
	case kind == isRefusal && child.OutOfMemory(said):
		return nil, failed(child.LimitMemory, "")
	case kind == isRefusal:
		return nil, errors.New(said)
	case kind != isCode || len(written) > maxCompiled:
		return nil, failed("", "it did not write code; name a program that calls host.Compile")
	}
	c, err := h.engine.Deserialize(code)
	if errors.Is(err, wasmtime.ErrTooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, failed("", fmt.Sprintf("its version differs from this program's; restart this program: %v", err))
	}
	return c, nil
}
