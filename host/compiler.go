package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/wasmtime"
)

const (
	maxCompiled = 1 << 30 // bytes of compiled code; SpiderMonkey has 43 MiB
	maxWords    = 4 * kib // of what a compiler says
	// processMemory is what a compiler's process has for itself. The system counts what is reserved for stacks and heaps, used or not.
	processMemory = 512 * mib
)

// CompilerError is a compilation that did not come to its end in the process that Options.Compiler names.
type CompilerError struct {
	// Limit is what the process used up, "processor time" or "memory"; empty when it failed for another reason.
	Limit string
	// Allowed is what it was allowed: twice what was estimated, with 2 GiB at most, and what a process needs.
	Allowed CompileCost
	Reason  string
}

func (e *CompilerError) Error() string {
	if e.Limit != "" {
		return fmt.Sprintf("its code takes too long to compile: the compiler was ended by its limit of %s, of %v", e.Limit, e.Allowed)
	}
	return "the compiler, the program of Options.Compiler, failed: " + e.Reason
}

// allowed is what a process may use to compile something, by its estimate. The system counts whole seconds.
func (c CompileCost) allowed() CompileCost {
	return CompileCost{(2*c.Time + time.Second).Truncate(time.Second), min(2*c.Memory, maxCompileMemory) + processMemory}
}

// Compile is all that a program of Options.Compiler does, with its standard input and output: it reads a component, takes on limits
// that its estimate sets, and writes the compiled code or why there is none. From then on the process can open and write no file.
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

// What a compiler writes begins with what it is.
const isCode, isRefusal = 'c', 'r'

func compileConfined(in io.Reader) ([]byte, error) {
	wasm, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("read component: %w", err)
	}
	total := codeCost{guarded: true}
	if err := total.check(wasm); err != nil {
		return nil, err
	}
	if err := confine(total.cost().allowed()); err != nil {
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

// confine limits this process for good.
func confine(to CompileCost) error {
	for _, l := range []struct {
		resource int
		most     uint64
	}{
		{syscall.RLIMIT_CORE, 0},
		{syscall.RLIMIT_FSIZE, 0},
		{syscall.RLIMIT_NOFILE, 0},
		{syscall.RLIMIT_CPU, uint64(to.Time / time.Second)},
		{syscall.RLIMIT_DATA, uint64(to.Memory)},
	} {
		if err := syscall.Setrlimit(l.resource, &syscall.Rlimit{Cur: l.most, Max: l.most}); err != nil {
			return err
		}
	}
	return nil
}

// compileOutside has a process of its own compile a component. The process ends with ctx, with the host and with this process.
func (h *Host) compileOutside(ctx context.Context, wasm []byte, takes CompileCost) (*wasmtime.Component, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.closing, cancel)() //nolint:contextcheck // it ends with the host, too
	allowed := takes.allowed()
	written, words := &bounded{most: maxCompiled}, &bounded{most: maxWords}
	cmd := exec.CommandContext(ctx, h.options.Compiler[0], h.options.Compiler[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(wasm), written, words
	// What the engine reads of the environment must be the same in both.
	const details = "WASMTIME_BACKTRACE_DETAILS"
	cmd.Env = []string{"RAYON_NUM_THREADS=" + strconv.Itoa(compileThreads), details + "=" + os.Getenv(details)}
	cmd.WaitDelay = time.Second
	endWithParent(cmd)
	runtime.LockOSThread() // the system ends the process with the thread that started it
	err := cmd.Run()
	runtime.UnlockOSThread()
	kind, code := byte(0), written.Bytes()
	if len(code) > 0 {
		kind, code = code[0], code[1:]
	}
	said := words.String()
	if kind == isRefusal {
		said = string(code[:min(len(code), maxWords)])
	}
	failed := func(limit, reason string) error {
		return &CompilerError{limit, allowed, abi.PrintableCut(reason, maxWords)}
	}
	exit, killed := errors.AsType[*exec.ExitError](err)
	switch {
	case h.closing.Err() != nil:
		return nil, ErrClosed
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case killed && exit.UserTime()+exit.SystemTime() >= allowed.Time-time.Second/2:
		return nil, failed("processor time", "")
	case outOfMemory.MatchString(said):
		return nil, failed("memory", "")
	case err != nil:
		return nil, failed("", fmt.Sprintf("%v: %s", err, strings.TrimSpace(said)))
	case kind == isRefusal:
		return nil, errors.New(said)
	case kind != isCode || written.cut:
		return nil, failed("", "it wrote something else than code: is it a program that calls host.Compile?")
	}
	c, err := h.engine.Deserialize(code)
	if errors.Is(err, wasmtime.ErrTooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, failed("", fmt.Sprintf("it is of another version than this program; start this one anew: %v", err))
	}
	return c, nil
}

// outOfMemory is what the engine, the language it is written in and Go say when the system gives no more memory.
var outOfMemory = regexp.MustCompile(`memory allocation of \d+ bytes failed|[Cc]annot allocate memory|out of memory`)

// bounded keeps the begin of what is written to it.
type bounded struct {
	bytes.Buffer
	most int
	cut  bool
}

func (b *bounded) Write(p []byte) (int, error) {
	kept := p[:min(len(p), b.most-b.Len())]
	b.cut = b.cut || len(kept) < len(p)
	b.Buffer.Write(kept)
	return len(p), nil
}
