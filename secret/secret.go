// Package secret keeps named credentials encrypted in one file, with the key in a keyring or in a file beside it that only
// its owner can read, and redacts known values from text. A holder of the key wrote the contents of the file under the
// listed names and times; anything else is refused with a typed error and left alone. Nothing proves that the file is the
// newest: anyone who can write to the folder can put an older file back. The length of a value is not hidden, and a process
// that has read a value does not wipe it from memory.
package secret

import (
	"context"
	"crypto/cipher"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/stilehost/stile/internal/lazyregexp"
)

// The files of a store, in its folder. File.lock is held by the process that changes the store.
const (
	File    = "secrets.json"
	KeyFile = "secrets.key" // when there is no keyring
)

const (
	// MaxValue is the most bytes of a value.
	MaxValue = 16 << 10
	// MaxSecrets is how many secrets a store may have.
	MaxSecrets = 1000

	lockRetry = 5 * time.Millisecond
)

var validName = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// CheckName returns a *NameError when a name cannot be one of a secret.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return &NameError{}
	}
	return nil
}

// Options are what a store is opened with. The zero value works.
type Options struct {
	// Keyring keeps the key of a new store, if it does keep it, and of stores made with it before. Default none: the key is
	// in KeyFile.
	Keyring Keyring
	// Logger is told where a new key goes, and never a value. Default none.
	Logger *slog.Logger
}

// Entry says what there is to know of a secret but its value.
type Entry struct {
	Name string `json:"name"`
	// Created and Changed are when it was first and last set, in UTC, to the second.
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
}

// A Store is a folder with secrets. Any number of goroutines and processes may use it at once: each operation sees what the
// last finished one left. Whoever opened it closes it.
type Store struct {
	dir     string
	keyring Keyring
	log     *slog.Logger

	mu      sync.Mutex
	ciphers map[string]cipher.AEAD // by ID of the contents; nil after Close
	place   Place
}

// Open opens the store in dir, and makes the folder when it is missing. Store and key are made by the first Set. It fails with
// an *AccessError when others could write to the folder or read its files, a *DamagedError when the file is not what was
// written, and a *KeyError when its key is not to be had.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	s := &Store{dir: dir, keyring: o.Keyring, log: o.Logger, ciphers: map[string]cipher.AEAD{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	err := openPrivate(dir)
	if err == nil {
		_, _, err = s.load(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open secrets: %w", err)
	}
	return s, nil
}

// Close forgets the key. Operations fail afterwards.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ciphers = nil
	return nil
}

// KeyPlace says where the key was when the store was last looked at.
func (s *Store) KeyPlace() Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// load reads the store as it is now, and its key. Without a store there are no contents and no cipher.
func (s *Store) load(ctx context.Context) (*contents, cipher.AEAD, error) {
	if err := s.usable(ctx); err != nil {
		return nil, nil, err
	}
	c, err := s.read()
	if c == nil || err != nil {
		return nil, nil, err
	}
	key, err := s.cipher(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	return c, key, nil
}

func (s *Store) usable(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ciphers == nil {
		return errClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Get returns the value of a secret, byte for byte as it was set, or ErrNotFound.
func (s *Store) Get(ctx context.Context, name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	c, key, err := s.load(ctx)
	if err != nil {
		return "", fmt.Errorf("get secret %s: %w", name, err)
	}
	if c != nil {
		if i, ok := c.find(name); ok {
			return s.open(c, key, c.Entries[i])
		}
	}
	return "", fmt.Errorf("secret %s: %w", name, ErrNotFound)
}

// List returns what there is, by name. A damaged secret is an error that names it.
func (s *Store) List(ctx context.Context) ([]Entry, error) {
	c, key, err := s.load(ctx)
	if err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	if c == nil {
		return nil, nil
	}
	entries := make([]Entry, len(c.Entries))
	for i, e := range c.Entries {
		if _, err := s.open(c, key, e); err != nil {
			return nil, err
		}
		entries[i] = e.Entry
	}
	return entries, nil
}

// Set keeps a value of 1 to MaxValue bytes, any bytes, under a name, in place of the one before. When it returns, the value
// outlasts a power failure; when it fails, the store is as it was.
func (s *Store) Set(ctx context.Context, name, value string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	switch {
	case value == "":
		return &ValueError{name, "the value is empty"}
	case len(value) > MaxValue:
		return &ValueError{name, fmt.Sprintf("the value has more than %d bytes", MaxValue)}
	}
	return s.change(ctx, name, func(c *contents, key cipher.AEAD) (err error) {
		if key == nil {
			if key, err = s.begin(ctx, c); err != nil {
				return err
			}
		}
		now := time.Now().UTC().Truncate(time.Second)
		e := Entry{Name: name, Created: now, Changed: now}
		i, ok := c.find(name)
		switch {
		case ok:
			e.Created = c.Entries[i].Created
		case len(c.Entries) >= MaxSecrets:
			return &ValueError{name, fmt.Sprintf("there are %d secrets, which is the most there may be", MaxSecrets)}
		default:
			c.Entries = slices.Insert(c.Entries, i, entry{})
		}
		c.Entries[i] = entry{e, seal(key, value, c.context(e))}
		return nil
	})
}

// Remove removes a secret, or returns ErrNotFound.
func (s *Store) Remove(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return s.change(ctx, name, func(c *contents, _ cipher.AEAD) error {
		i, ok := c.find(name)
		if !ok {
			return ErrNotFound
		}
		c.Entries = slices.Delete(c.Entries, i, i+1)
		return nil
	})
}

// change reads, changes and writes the store while no other process does. Before the first Set there is no cipher and
// nothing in the contents.
func (s *Store) change(ctx context.Context, name string, apply func(*contents, cipher.AEAD) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("change secret %s: %w", name, err)
		}
	}()
	if err := s.usable(ctx); err != nil {
		return err
	}
	l := flock.New(s.path(File+".lock"), flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, lockRetry); err != nil {
		_ = l.Close() // it holds nothing
		return fmt.Errorf("wait for another process: %w", err)
	}
	defer func() { _ = l.Close() }() // what was written is written
	c, key, err := s.load(ctx)
	if err != nil {
		return err
	}
	if c == nil {
		c = &contents{}
	}
	if err := apply(c, key); err != nil {
		return err
	}
	return s.write(c)
}
