package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/stilehost/stile/secret"
)

// TestAsk types a value, or interrupts, at a terminal. The terminal shows none of the value, and its settings are restored.
func TestAsk(t *testing.T) {
	for typed, code := range map[string]int{
		"canary-of-a-terminal\n": 0,
		"canary\x03":             130, // Ctrl-C
	} {
		home := t.TempDir()
		person, terminal, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		before := state(t, terminal)
		stile := exec.CommandContext(t.Context(), "stile", "secret", "set", "github-token")
		stile.Env = append(os.Environ(), "STILE_HOME="+home, "STILE_KEYRING=off")
		stile.Stdin, stile.Stdout = terminal, terminal
		stile.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		var stderr bytes.Buffer
		stile.Stderr = &stderr
		if err := stile.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- stile.Wait() }()
		for reflect.DeepEqual(state(t, terminal), before) {
			select {
			case err := <-ended:
				t.Fatalf("it did not ask: %v\n%s", err, &stderr)
			default:
			}
		}
		if _, err := io.WriteString(person, typed); err != nil {
			t.Fatal(err)
		}
		err = <-ended
		if got := stile.ProcessState.ExitCode(); got != code {
			t.Errorf("%q: exit code %d, not %d: %v\n%s", typed, got, code, err, &stderr)
		}
		if !reflect.DeepEqual(state(t, terminal), before) {
			t.Errorf("%q: the terminal does not show any more what is typed", typed)
		}
		shown := make(chan []byte, 1)
		go func() {
			all, _ := io.ReadAll(person) // fails when the terminal is closed
			shown <- all
		}()
		if err := terminal.Close(); err != nil {
			t.Fatal(err)
		}
		if all := string(<-shown) + stderr.String(); strings.Contains(all, "canary") || !strings.HasPrefix(stderr.String(), "Value of github-token (not shown): ") {
			t.Errorf("%q: it shows %q", typed, all)
		}
		_ = person.Close()

		want := ""
		if code == 0 {
			want = strings.TrimSuffix(typed, "\n")
		}
		kept(t, home, want)
	}
}

func state(t *testing.T, terminal *os.File) *term.State {
	t.Helper()
	s, err := term.GetState(int(terminal.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// kept checks the value of github-token; "" is none.
func kept(t *testing.T, home, want string) {
	t.Helper()
	store, err := secret.Open(t.Context(), home, secret.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	got, err := store.Get(t.Context(), "github-token")
	if got != want || (want == "") != errors.Is(err, secret.ErrNotFound) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// TestLineEnd keeps the input except for one line end.
func TestLineEnd(t *testing.T) {
	for given, want := range map[string]string{
		"v": "v", "v\n": "v", "v\r\n": "v", "v\n\n": "v\n", "v\r": "v\r", " v \n": " v ", "a\nb": "a\nb",
	} {
		home := t.TempDir()
		t.Setenv("STILE_HOME", home)
		t.Setenv("STILE_KEYRING", "off")
		var out, errs bytes.Buffer
		if code := run([]string{"secret", "set", "github-token"}, &streams{in: strings.NewReader(given), out: &out, err: &errs}); code != 0 || out.Len() > 0 || !strings.Contains(errs.String(), "no rule can use github-token as its credential") {
			t.Fatalf("%q: exit code %d, %s%s", given, code, &out, &errs)
		}
		kept(t, home, want)
	}
}

// TestInterruptSecret interrupts a command whose value does not end. Nothing is kept.
func TestInterruptSecret(t *testing.T) {
	t.Setenv("STILE_HOME", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	go func() {
		_, _ = io.WriteString(out, "canary") // returns once it has been read
		cancel()
	}()
	var none bytes.Buffer
	c := secretSetCommand{Name: "github-token"}
	if err := c.Run(ctx, &streams{in: in, out: &none, err: &none}); !errors.Is(err, context.Canceled) || none.Len() > 0 {
		t.Errorf("got %v, %s", err, &none)
	}
	_ = out.Close()
	kept(t, os.Getenv("STILE_HOME"), "")
}
