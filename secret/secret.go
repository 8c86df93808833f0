// Package secret keeps named credentials encrypted in one file, and redacts known values from text. The key is in a keyring, or in a
// file next to it that only its owner can read. Only a holder of the key can have written the values, their names and their times.
// The store refuses anything else with a typed error and does not change it.
//
// Nothing proves that the file is the newest: anyone who can write to the folder can put an older file back. The length of a value
// is not hidden, and a process that has read a value does not wipe it from memory.
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

	"github.com/stilehost/stile/internal/spelling"
)

// The files of a store, in its folder. The process that changes the store holds a lock on File.lock. File.spare reserves room
// for removing secrets on a full disk.
const (
	File    = "secrets.json"
	KeyFile = "secrets.key" // only without a keyring
)

const (
	// MaxValue is the largest size of a value, in bytes.
	MaxValue = 16 << 10
	// MaxSecrets is how many secrets a store may have.
	MaxSecrets = 1000

	lockRetry = 5 * time.Millisecond
)

// CheckName returns a *NameError for a name that a secret cannot have.
func CheckName(name string) error {
	if !spelling.IsName(name) {
		return &NameError{}
	}
	return nil
}

// Options configure a store. The zero value works.
type Options struct {
	// Keyring keeps the key of a new store if it can, and of stores that were made with it. Default: none, and the key is in
	// KeyFile.
	Keyring Keyring
	// Logger learns where a new key is kept. It never gets a value. Default: none.
	Logger *slog.Logger
}

// Entry describes a secret without its value.
type Entry struct {
	Name string `json:"name"`
	// Created and Changed are when it was first and last set, in UTC, to the second.
	Created time.Time `json:"created"`
	Changed time.Time `json:"changed"`
}

// A Store is a folder with secrets. Goroutines and processes may use it at once: each operation sees the result of the one that
// finished last. The caller of Open closes it.
type Store struct {
	dir     string
	keyring Keyring
	log     *slog.Logger

	mu      sync.Mutex
	ciphers map[string]cipher.AEAD // by the ID of the contents; nil after Close
	place   Place
}

// Open opens the store in dir, and makes the folder if it is missing. The first Set makes the store and its key. Open fails with an
// *AccessError if others could write to the folder or read its files, a *DamagedError if the file was altered, and a *KeyError if
// its key is missing or wrong.
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

// Close forgets the key. Later operations fail.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ciphers = nil
	return nil
}

// KeyPlace returns where the key was when the store was last read.
func (s *Store) KeyPlace() Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// load reads the current store, and its key. Without a store, there are no contents and no cipher.
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

// Get returns the value of a secret exactly as it was set, or ErrNotFound.
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

// List returns the entries by name. A damaged secret is an error that names it.
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

// Set stores a value of 1 to MaxValue bytes under a name, and replaces the previous value. It refuses a value
// of punctuation with too many spellings for a [Redactor] to know all of them. When Set returns nil, the value
// survives a power failure. If it fails, the store is unchanged.
func (s *Store) Set(ctx context.Context, name, value string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	switch {
	case value == "":
		return &ValueError{name, "the value is empty"}
	case len(value) > MaxValue:
		return &ValueError{name, fmt.Sprintf("the value has more than %d bytes", MaxValue)}
	case !spelling.Complete(value):
		return &ValueError{name, "the value has too much punctuation: logs and responses cannot be searched for all ways to write it; store it in parts, or as base64"}
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
			return &ValueError{name, fmt.Sprintf("there are %d secrets, which is the maximum; remove one first", MaxSecrets)}
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

// change reads, changes and writes the store while no other process does. Before the first Set, there is no cipher and the contents
// are empty.
func (s *Store) change(ctx context.Context, name string, apply func(*contents, cipher.AEAD) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("secret %s: %w", name, err)
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
	defer func() { _ = l.Close() }() // the file is already written
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
