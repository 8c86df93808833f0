// Package keyring reaches the operating system's keyring: the Secret Service on Linux, the Keychain on macOS. If there is none, as
// on servers, it reports that immediately. It starts no bus or daemon of its own, and does not wait long for either.
package keyring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/zalando/go-keyring"
	ss "github.com/zalando/go-keyring/secret_service"

	"github.com/stilehost/stile/secret"
)

const (
	service = "stile"

	reachable = 3 * time.Second // how long a keyring may take to answer that it exists
	answer    = time.Minute     // how long it may take in all: a person may have to unlock it
)

// ErrNone reports that this machine or session has no keyring.
var ErrNone = errors.New("there is no keyring in this session")

// System is the keyring of the user who runs the process. The zero value is ready, for any number of goroutines.
type System struct{}

var _ secret.Keyring = System{}

// Get implements secret.Keyring.
func (System) Get(ctx context.Context, account string) (string, error) {
	if err := reach(ctx); err != nil {
		return "", err
	}
	value, err := within(ctx, answer, func() (string, error) { return keyring.Get(service, account) })
	if errors.Is(err, keyring.ErrNotFound) {
		return "", secret.ErrNotFound
	}
	return value, err
}

// Set implements secret.Keyring.
func (System) Set(ctx context.Context, account, value string) error {
	if err := reach(ctx); err != nil {
		return err
	}
	_, err := within(ctx, answer, func() (string, error) { return "", keyring.Set(service, account, value) })
	return err
}

// reach returns an error if no keyring answers.
func reach(ctx context.Context) error {
	if runtime.GOOS == "darwin" {
		return nil // the Keychain is always there
	}
	if !bus() {
		return ErrNone
	}
	_, err := within(ctx, reachable, func() (string, error) {
		s, err := ss.NewSecretService()
		if err != nil {
			return "", err
		}
		session, err := s.OpenSession()
		if err != nil {
			return "", err
		}
		return "", s.Close(session)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	return nil
}

// bus reports whether there is a session bus to connect to. The D-Bus client looks in the same places, but would start a bus if it
// found none.
func bus() bool {
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" {
		return address != "autolaunch:"
	}
	_, err := os.Stat(filepath.Join("/run/user", strconv.Itoa(os.Getuid()), "bus"))
	return err == nil
}

// within waits for work until a time or ctx ends. The clients of keyrings cannot be cancelled: one that does not answer stays until
// the process ends.
func within(ctx context.Context, limit time.Duration, work func() (string, error)) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the keyring did not answer in %v", limit))
	defer cancel()
	type outcome struct {
		value string
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := work()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
