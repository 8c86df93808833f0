package secret

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/stilehost/stile/internal/atomicfile"
	"github.com/stilehost/stile/internal/spelling"
)

const (
	format  = "stile secrets 1"
	maxFile = 64 << 20 // bytes; the largest possible store is smaller
)

// contents are the contents of the file, as JSON. There is one spelling: if encode would write it differently, somebody altered it.
type contents struct {
	Format string `json:"format"`
	// ID is random. It is bound into everything that the file seals, and names the key's account in a keyring.
	ID  string `json:"id"`
	Key Place  `json:"key"`
	// Check is the empty text, sealed. It opens only with the key that the file was written with.
	Check   []byte  `json:"check"`
	Entries []entry `json:"entries"` // by name
}

type entry struct {
	Entry
	// Sealed is a nonce, followed by the encrypted value.
	Sealed []byte `json:"sealed"`
}

func (c *contents) encode() ([]byte, error) {
	text, err := json.MarshalIndent(c, "", "  ")
	return append(text, '\n'), err
}

// find returns where the entry of a name is, or where it would be inserted.
func (c *contents) find(name string) (int, bool) {
	return slices.BinarySearchFunc(c.Entries, name, func(e entry, name string) int { return strings.Compare(e.Name, name) })
}

// read reads the file. Without a file, the contents are nil.
func (s *Store) read() (*contents, error) {
	path := s.path(File)
	text, err := readPrivate(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := parse(text)
	if err != nil {
		return nil, &DamagedError{File: path, Problem: err.Error(), Remedy: "restore it from a backup, or move it away and set its secrets again"}
	}
	return c, nil
}

func parse(text []byte) (*contents, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	var c contents
	err := json.Unmarshal(text, &c)
	// A file that is not a store may hold anything, and an error must not repeat it.
	if err != nil || !strings.HasPrefix(c.Format, "stile secrets ") {
		return nil, errors.New("it is truncated, or is not a store of secrets")
	}
	if c.Format != format {
		return nil, errors.New("another version of this program wrote it")
	}
	ours, err := c.encode()
	if err != nil || !bytes.Equal(ours, text) {
		return nil, errors.New("it was altered")
	}
	for i, e := range c.Entries {
		if !spelling.IsName(e.Name) || i > 0 && c.Entries[i-1].Name >= e.Name {
			return nil, errors.New("it was altered")
		}
	}
	return &c, nil
}

func (s *Store) write(c *contents) error {
	text, err := c.encode()
	if err == nil {
		err = atomicfile.ReplaceSpared(atomicfile.Machine{}, s.path(File), text)
	}
	if err != nil {
		return fmt.Errorf("write secrets: %w", err)
	}
	return nil
}

// seal encrypts text so that it opens only with the same context.
func seal(key cipher.AEAD, text string, context []byte) []byte {
	sealed := make([]byte, key.NonceSize(), key.NonceSize()+len(text)+key.Overhead())
	_, _ = rand.Read(sealed) // never fails
	return key.Seal(sealed, sealed, []byte(text), context)
}

func unseal(key cipher.AEAD, sealed, context []byte) (string, error) {
	if len(sealed) < key.NonceSize() {
		return "", errors.New("it is too short")
	}
	text, err := key.Open(nil, sealed[:key.NonceSize()], sealed[key.NonceSize():], context)
	return string(text), err
}

// context identifies what an entry is bound to: its store, its name and its times. An entry that is moved to another name or store
// does not open.
func (c *contents) context(e Entry) []byte {
	return bound("entry", c.ID, e.Name, e.Created.Format(time.RFC3339Nano), e.Changed.Format(time.RFC3339Nano))
}

func (c *contents) checkContext() []byte { return bound("check", c.ID, string(c.Key)) }

// bound joins words so that different words never give the same bytes.
func bound(words ...string) []byte {
	var b []byte
	for _, w := range words {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(w))), w...)
	}
	return b
}

// open returns the value of an entry.
func (s *Store) open(c *contents, key cipher.AEAD, e entry) (string, error) {
	value, err := unseal(key, e.Sealed, c.context(e.Entry))
	if err != nil {
		return "", &DamagedError{s.path(File), e.Name, "it was altered", "set this secret again, or remove it; the others are intact"}
	}
	return value, nil
}
