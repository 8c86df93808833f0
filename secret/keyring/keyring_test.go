package keyring

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stilehost/stile/secret"
)

// TestNoKeyring has sessions as servers and broken desktops have them. None of them is waited for, and a store works without.
func TestNoKeyring(t *testing.T) {
	if runtime.GOOS == "darwin" {
		return // the Keychain is the user's own, and needs no bus
	}
	dir := t.TempDir()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "silent"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	t.Setenv("PATH", dir) // where nothing is that could start a bus
	for _, c := range []struct{ name, address string }{
		{"no bus", "autolaunch:"},
		{"nonsense", "nonsense"},
		{"dead bus", "unix:path=" + filepath.Join(dir, "dead")},
		{"silent bus", "unix:path=" + silent.Addr().String()}, // last: the D-Bus client never gives up on it
	} {
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", c.address)
		unreachable(t, c.name)
	}
}

func unreachable(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := secret.Open(ctx, t.TempDir(), secret.Options{Keyring: System{}})
	if err != nil {
		t.Fatal(name, err)
	}
	if err := s.Set(ctx, "github", "value"); err != nil || s.KeyPlace() != secret.PlaceFile {
		t.Fatal(name, s.KeyPlace(), err)
	}
	if _, err := (System{}).Get(ctx, "account"); !errors.Is(err, ErrNone) {
		t.Fatal(name, err)
	}
	if ctx.Err() != nil {
		t.Fatal(name, "took too long")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCancelled does not wait for a keyring that a person has to unlock.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	blocked := make(chan struct{})
	defer close(blocked)
	_, err := within(ctx, time.Hour, func() (string, error) {
		cancel(why)
		<-blocked
		return "", nil
	})
	if !errors.Is(err, why) {
		t.Fatal(err)
	}
}
