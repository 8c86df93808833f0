package secret

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/stilehost/stile/internal/atomicfile"
)

// A Keyring keeps the key of a store away from the files of other programs: in the operating system's keyring, or in a key service
// of the embedding program. Each method returns soon after ctx ends.
type Keyring interface {
	// Get returns the key of an account, or ErrNotFound.
	Get(ctx context.Context, account string) (string, error)
	Set(ctx context.Context, account, value string) error
}

// Place is where the key of a store is.
type Place string

const (
	PlaceNone    Place = "" // there is no store yet
	PlaceKeyring Place = "keyring"
	PlaceFile    Place = "file"
)

const startAnew = "without it, the secrets are lost: move %s away and set them again"

// aead makes the cipher of a key. XChaCha20's nonces are long enough to be chosen at random for any number of values.
func aead(key []byte) (cipher.AEAD, error) {
	if len(key) != chacha20poly1305.KeySize || [chacha20poly1305.KeySize]byte(key) == [chacha20poly1305.KeySize]byte{} {
		return nil, errors.New("it is damaged") // a file system may leave zeros after a power failure
	}
	return chacha20poly1305.NewX(key)
}

// begin makes the contents of a new store, with a key. The caller holds the lock.
func (s *Store) begin(ctx context.Context, c *contents) (cipher.AEAD, error) {
	*c = contents{Format: format, ID: rand.Text(), Entries: []entry{}}
	key, err := s.keepInKeyring(ctx, c.ID)
	c.Key = PlaceKeyring
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		s.log.Info("the key of the secret store is kept in a file, because there is no keyring", "reason", err)
		c.Key = PlaceFile
		key, err = s.keepInFile()
	}
	if err != nil {
		return nil, err
	}
	made, err := aead(key)
	if err != nil {
		return nil, err
	}
	c.Check = seal(made, "", c.checkContext())
	s.remember(c, made)
	return made, nil
}

// keepInKeyring makes a key, and reads it back to check that the keyring kept it.
func (s *Store) keepInKeyring(ctx context.Context, account string) ([]byte, error) {
	if s.keyring == nil {
		return nil, errors.New("it is turned off")
	}
	key := make([]byte, chacha20poly1305.KeySize)
	_, _ = rand.Read(key) // never fails
	text := base64.StdEncoding.EncodeToString(key)
	if err := s.keyring.Set(ctx, account, text); err != nil {
		return nil, err
	}
	kept, err := s.keyring.Get(ctx, account)
	if err == nil && kept != text {
		err = errors.New("it did not keep the key")
	}
	return key, err
}

// keepInFile returns the key in the key file, and makes the file if there is none.
func (s *Store) keepInFile() ([]byte, error) {
	key, err := s.keyFromFile()
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, chacha20poly1305.KeySize)
		_, _ = rand.Read(key) // never fails
		if err = atomicfile.ReplaceLocked(atomicfile.Machine{}, s.path(KeyFile), key); err != nil {
			return nil, fmt.Errorf("write the key of the secret store: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	if _, err := aead(key); err != nil {
		return nil, &KeyError{s.path(KeyFile) + " is damaged", "restore the store from a backup, or move the key away, because no store needs it", nil}
	}
	return key, nil
}

func (s *Store) keyFromFile() ([]byte, error) {
	return readPrivate(s.path(KeyFile), chacha20poly1305.KeySize)
}

// cipher returns the cipher that the contents were written with.
func (s *Store) cipher(ctx context.Context, c *contents) (cipher.AEAD, error) {
	s.mu.Lock()
	known, ok := s.ciphers[c.ID]
	s.mu.Unlock()
	if !ok {
		key, err := s.findKey(ctx, c)
		if err != nil {
			return nil, err
		}
		known = key
	}
	if _, err := unseal(known, c.Check, c.checkContext()); err != nil {
		return nil, &KeyError{
			"it is not the key that " + s.path(File) + " was written with, or that file was altered",
			"restore the two from the same backup; " + fmt.Sprintf(startAnew, s.path(File)), nil,
		}
	}
	s.remember(c, known)
	return known, nil
}

func (s *Store) remember(c *contents, cipher cipher.AEAD) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ciphers != nil {
		s.ciphers[c.ID] = cipher
		s.place = c.Key
	}
}

func (s *Store) findKey(ctx context.Context, c *contents) (cipher.AEAD, error) {
	var (
		key   []byte
		err   error
		where string
	)
	switch c.Key {
	case PlaceFile:
		where = s.path(KeyFile)
		key, err = s.keyFromFile()
	case PlaceKeyring:
		where = "the keyring"
		if s.keyring == nil {
			return nil, &KeyError{"it is in the keyring, which is turned off", "turn it on, or move " + s.path(File) + " away and set its secrets again", nil}
		}
		var text string
		if text, err = s.keyring.Get(ctx, c.ID); err == nil {
			key, _ = base64.StdEncoding.DecodeString(text) // without valid base64 there is no key
		}
	default:
		return nil, &DamagedError{File: s.path(File), Problem: "it was altered", Remedy: "restore it from a backup"}
	}
	restore := "restore it from a backup; " + fmt.Sprintf(startAnew, s.path(File))
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNotFound):
		return nil, &KeyError{"it is missing in " + where, restore, nil}
	case err != nil && c.Key == PlaceKeyring:
		return nil, &KeyError{"the keyring that holds it is not available", "unlock it, or run this in the desktop session that created the store", err}
	case err != nil:
		return nil, err
	}
	found, err := aead(key)
	if err != nil {
		return nil, &KeyError{"what is in " + where + " is damaged", restore, nil}
	}
	return found, nil
}
