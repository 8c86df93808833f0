package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/term"

	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/secret"
	"github.com/stilehost/stile/secret/keyring"
)

type secretCommand struct {
	Set    secretSetCommand    `cmd:"" help:"Keep a secret under a name."`
	List   secretListCommand   `cmd:"" help:"List the names of secrets, and when each was set."`
	Remove secretRemoveCommand `cmd:"" help:"Remove a secret."`
}

// Help implements kong.HelpProvider.
func (*secretCommand) Help() string {
	return `Secrets are encrypted in STILE_HOME. Their key is in the keyring of the desktop session. Without a keyring, or if STILE_KEYRING is off when you set the first secret, the key is in a file beside them that only you can read. No command prints a value.

Examples:

    stile secret set github-token
    stile secret list
    stile secret remove github-token`
}

// openSecrets opens the store of STILE_HOME.
func openSecrets(ctx context.Context, where settings, s *streams) (*secret.Store, error) {
	o := secret.Options{Logger: slog.New(&warnings{streams: s, cache: where.cache})}
	if where.keyring {
		o.Keyring = keyring.System{}
	}
	return secret.Open(ctx, where.home, o)
}

// credentials are the secrets that rules name. Their store is opened on first use.
type credentials struct {
	open  func() (*secret.Store, error)
	store *secret.Store

	mu       sync.Mutex
	values   map[string]bool // the values that redactor removes; nil before redactAll
	redactor atomic.Pointer[secret.Redactor]
	hidden   atomic.Bool // redact removes everything, because nobody knows what is secret
}

func newCredentials(ctx context.Context, where settings, s *streams) *credentials {
	c := &credentials{}
	c.open = sync.OnceValues(func() (*secret.Store, error) {
		var err error
		c.store, err = openSecrets(ctx, where, s)
		return c.store, err
	})
	return c
}

// Get implements http.Credentials.
func (c *credentials) Get(ctx context.Context, name string) (string, error) {
	store, err := c.open()
	if err != nil {
		return "", err
	}
	value, err := store.Get(ctx, name)
	if err == nil {
		c.know(value) // the secret may be newer than this process
	}
	return value, err
}

// know adds values to remove from recordings, if any are removed.
func (c *credentials) know(values ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := len(c.values)
	for _, value := range values {
		if c.values != nil && len(value) >= http.MinSecret { // as no shorter one is sent
			c.values[value] = true
		}
	}
	if len(c.values) > known {
		c.redactor.Store(secret.NewRedactor(slices.Collect(maps.Keys(c.values))...))
	}
}

// redactAll makes redact remove all secrets. Secrets set later are removed from their first use on. Doing it again does nothing, unless it failed.
func (c *credentials) redactAll(ctx context.Context, home string) error {
	c.mu.Lock()
	known := c.values != nil
	if !known {
		c.values = map[string]bool{}
	}
	c.mu.Unlock()
	if known {
		return nil
	}
	err := c.readAll(ctx, home)
	if err != nil {
		c.mu.Lock()
		c.values = nil
		c.mu.Unlock()
	}
	return err
}

func (c *credentials) readAll(ctx context.Context, home string) error {
	if _, err := os.Lstat(filepath.Join(home, secret.File)); errors.Is(err, fs.ErrNotExist) {
		return nil // avoids asking the keyring
	}
	store, err := c.open()
	if err != nil {
		return err
	}
	entries, err := store.List(ctx)
	if err != nil {
		return err
	}
	var values []string
	for _, e := range entries {
		value, err := store.Get(ctx, e.Name)
		if err != nil {
			return err
		}
		values = append(values, value)
	}
	c.know(values...)
	return nil
}

// redact removes secrets from recordings.
func (c *credentials) redact(text []byte) []byte {
	if c.hidden.Load() && len(text) > 0 {
		return []byte("[not shown]")
	}
	redactor := c.redactor.Load()
	if redactor == nil {
		return text
	}
	return []byte(redactor.Redact(string(text)))
}

// Close must be called after the last use.
func (c *credentials) Close() error {
	if c.store == nil {
		return nil
	}
	return c.store.Close()
}

// withSecrets opens the store for as long as use takes.
func withSecrets(ctx context.Context, s *streams, use func(*secret.Store) error) (err error) {
	where, err := readSettings()
	if err != nil {
		return err
	}
	store, err := openSecrets(ctx, where, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return use(store)
}

type secretSetCommand struct {
	Name      string `arg:"" complete:"secret" help:"Name of the secret: a-z, 0-9, - and _."`
	ValueFile string `placeholder:"FILE" help:"File with the value. Default: stdin."`
	// Value catches a value on the command line, where it does not belong, so that the error does not repeat it.
	Value []string `arg:"" optional:"" hidden:""`
}

// Help implements kong.HelpProvider.
func (*secretSetCommand) Help() string {
	return `The value comes from stdin or from a file; at a terminal, stile asks for it and does not show it. It is never on the command line, where other programs and the shell's history would see it. One line end after the value is ignored. A value has at most 16 KiB.

Examples:

    stile secret set github-token
    pass show github | stile secret set github-token
    stile secret set service-account --value-file account.json`
}

// Run implements the command.
func (c *secretSetCommand) Run(ctx context.Context, s *streams) error {
	if len(c.Value) > 0 {
		return usagef("a value must not be on the command line, where other programs and the shell's history can see it; write only the name, and give the value on stdin or with --value-file")
	}
	if err := secret.CheckName(c.Name); err != nil { // before anybody types a value
		return err
	}
	value, err := c.read(ctx, s)
	if err != nil {
		return err
	}
	err = withSecrets(ctx, s, func(store *secret.Store) error { return store.Set(ctx, c.Name, value) })
	if problem := http.CredentialProblem(value); err == nil && problem != "" { // the secret may be meant for something else
		s.say("stile: warning: no rule can use %s as its credential: the value %s", c.Name, problem)
	}
	return err
}

// read reads the value without the line end after it.
func (c *secretSetCommand) read(ctx context.Context, s *streams) (string, error) {
	const most = secret.MaxValue + int64(len("\r\n"))
	var (
		value []byte
		err   error
	)
	in, ok := terminal(s.in)
	switch {
	case c.ValueFile != "":
		value, err = interruptible(ctx, func() ([]byte, error) {
			f, err := os.Open(c.ValueFile) // the file may be a pipe or a terminal
			if err != nil {
				return nil, &usageError{err}
			}
			return readOpened(f, most)
		})
	case ok:
		return ask(ctx, s, in, c.Name)
	default:
		// One byte more than fits is enough to be refused as too long.
		value, err = interruptible(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(s.in, most+1)) })
	}
	if err != nil {
		return "", err
	}
	value, ended := bytes.CutSuffix(value, []byte{'\n'})
	if ended {
		value = bytes.TrimSuffix(value, []byte{'\r'})
	}
	return string(value), nil
}

// maxTyped is the longest line that every terminal passes on in full. Terminals cut longer lines silently.
const maxTyped = 1023

// ask lets a person type or paste the value without showing it.
func ask(ctx context.Context, s *streams, from *os.File, name string) (string, error) {
	fd := int(from.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	_, _ = fmt.Fprintf(s.err, "Value of %s (not shown): ", name)
	value, err := interruptible(ctx, func() ([]byte, error) { return term.ReadPassword(fd) })
	// An interrupted read has left the terminal without echo.
	err = errors.Join(err, term.Restore(fd, before))
	s.say("")
	switch {
	case err != nil:
		return "", err
	case len(value) >= maxTyped:
		return "", usagef("terminals may cut lines of %d bytes or more; give the value with --value-file, or through a pipe", maxTyped)
	}
	return string(value), nil
}

type secretListCommand struct {
	asJSON
}

// Help implements kong.HelpProvider.
func (*secretListCommand) Help() string {
	return `The output has the name of each secret, and when it was first and last set. It has no values.

Examples:

    stile secret list
    stile secret list --json`
}

// Run implements the command.
func (c *secretListCommand) Run(ctx context.Context, s *streams) error {
	return withSecrets(ctx, s, func(store *secret.Store) error {
		entries, err := store.List(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(s.out, append([]secret.Entry{}, entries...)) // a list, even if it is empty
		}
		rows := [][]string{{"NAME", "CREATED", "CHANGED"}}
		for _, e := range entries {
			rows = append(rows, []string{e.Name, when(e.Created), when(e.Changed)})
		}
		_, err = io.WriteString(s.out, table("", rows))
		return err
	})
}

type secretRemoveCommand struct {
	Name string `arg:"" complete:"secret" help:"Name of the secret."`
}

// Help implements kong.HelpProvider.
func (*secretRemoveCommand) Help() string {
	return `Examples:

    stile secret remove github-token`
}

// Run implements the command.
func (c *secretRemoveCommand) Run(ctx context.Context, s *streams) error {
	return withSecrets(ctx, s, func(store *secret.Store) error { return store.Remove(ctx, c.Name) })
}
