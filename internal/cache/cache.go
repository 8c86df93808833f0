// Package cache keeps data that can be rebuilt: compiled native code, memory images, the
// engine. Its content is later mapped and run, so each entry must carry a MAC with a key
// that only this user can read. An entry that does not verify is deleted and reported as
// missing. Processes may share a folder, with one key or several; each key has its own entries. When the folder grows too large, the
// least recently used entries are removed.
package cache

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/stilehost/stile/internal/atomicfile"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/private"
)

// The folder holds
//
//	objects/<sha256 of content>       the content and nothing else, so that it can be mapped
//	<kind>/<MAC of kind and key>      a record that binds kind and key to a content
//	locks/<MAC of kind and key>       an empty file, held by the process that builds the entry
//	locks/sweep                       held by the process that makes room; it has a byte for each countUnit added since the last sweep
//
// A record is replaced in one step after its object is in place, so a reader never sees half an entry. The times of
// record and object say when the entry was last used.
const (
	objects    = "objects"
	locks      = "locks"
	recordSize = 8 + sha256.Size + sha256.Size // length, digest, MAC
	lockRetry  = 5 * time.Millisecond

	entryMAC = "stile cache entry"
	nameMAC  = "stile cache name"

	maxSize    = 2 << 30     // bytes of all entries after a sweep
	sweepPart  = 16          // a sweep follows when this part of maxSize was added
	countUnit  = 64 << 10    // bytes
	block      = 4 << 10     // bytes that a file takes at least
	minAge     = time.Hour   // younger files that are unfinished, and younger locks, are not removed
	touchAfter = time.Minute // age at which a use renews the time of an entry
	mostBehind = 4           // entries that are stored in the background; others wait until they are stored
	maxBehind  = 4 << 20     // bytes of such an entry, which are in memory meanwhile

	sweepFile = "sweep"
	temporary = "tmp-" // what names of unfinished files begin with
)

// A Cache is a folder of authenticated entries, each named by a kind and a key. Goroutines may share it. The caller of Open closes
// it.
type Cache struct {
	dir  string
	root *os.Root
	key  []byte
	log  *slog.Logger
	max  int64 // bytes of all entries after a sweep

	closing sync.Mutex
	storing chan struct{} // has an element for each entry that is stored in the background
}

// Open opens the cache in dir with the MAC key in keyDir, file cache.key. It makes missing folders and a missing key. It fails if a
// folder or the key belongs to another user, or if others could write to it or read the key. It replaces a damaged key; the entries
// made with that key are then missing. log may be nil.
func Open(dir, keyDir string, log *slog.Logger) (*Cache, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	key, err := loadKey(keyDir, log)
	if err != nil {
		return nil, fmt.Errorf("cache key: %w", err)
	}
	root, err := private.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	return &Cache{dir: dir, root: root, key: key, log: log, max: maxSize, storing: make(chan struct{}, mostBehind)}, nil
}

// Close waits until all is stored, and releases the folder. Files that File returned stay open.
func (c *Cache) Close() error {
	c.closing.Lock()
	defer c.closing.Unlock()
	for range mostBehind {
		c.storing <- struct{}{}
	}
	defer func() {
		for range mostBehind {
			<-c.storing
		}
	}()
	return c.root.Close()
}

// Get returns the content of an entry. The bool reports whether there is one that verifies. An error means that the folder could not
// be read; callers may go on as if the entry were missing.
func (c *Cache) Get(kind, key string) ([]byte, bool, error) {
	f, ok, err := c.File(kind, key)
	if !ok {
		return nil, false, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, false, fmt.Errorf("cache: read %s: %w", kind, err)
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, false, fmt.Errorf("cache: read %s: %w", kind, err)
	}
	return data, true, nil
}

// File returns an entry's content as an open file, at its start. It was verified through this descriptor, so map it through the
// descriptor (/proc/self/fd, /dev/fd) and never by name. The caller closes it.
func (c *Cache) File(kind, key string) (*os.File, bool, error) {
	name, err := c.recordName(kind, key)
	if err != nil {
		return nil, false, err
	}
	record, err := c.readRecord(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err == nil {
		var f *os.File
		if f, err = c.openObject(kind, key, record); err == nil {
			c.touch(f, name, objectName(record[8:recordSize-sha256.Size]))
			return f, true, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // another process made room
		return nil, false, c.remove(name)
	}
	bad, ok := errors.AsType[*forgedError](err)
	if !ok {
		return nil, false, fmt.Errorf("cache: read %s: %w", kind, err)
	}
	c.log.Warn("cache entry does not verify and is deleted", "kind", kind, "reason", bad.reason)
	for _, n := range []string{name, bad.name} {
		if err := c.root.RemoveAll(n); err != nil {
			c.log.Warn("cache entry was not deleted", "kind", kind, "error", err)
		}
	}
	return nil, false, nil
}

// Put stores data under kind and key, and replaces any earlier content. After an error (disk full, read-only folder), the entry is
// unchanged or missing, and the caller goes on without the cache.
func (c *Cache) Put(kind, key string, data []byte) error {
	name, err := c.recordName(kind, key)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(data)
	record := make([]byte, 0, recordSize)
	record = binary.BigEndian.AppendUint64(record, uint64(len(data)))
	record = append(record, digest[:]...)
	record = append(record, c.mac(entryMAC, kind, key, record)...)
	if err := replace(c.root, objectName(digest[:]), data, false); err != nil {
		return fmt.Errorf("cache: keep %s: %w", kind, err)
	}
	if err := replace(c.root, name, record, false); err != nil {
		return fmt.Errorf("cache: keep %s: %w", kind, err)
	}
	if err := c.sweep(int64(len(data))); err != nil {
		c.log.Warn("cache could not be kept within its size", "error", err)
	}
	return nil
}

// Do returns the entry, or builds and stores it. If several goroutines or processes request
// it at once, one builds and the others wait for it until ctx ends. If the cache cannot store
// the result, or cannot lock, Do still returns what build made. A build may call Do for
// other entries.
func (c *Cache) Do(ctx context.Context, kind, key string, build func() ([]byte, error)) ([]byte, error) {
	return c.do(ctx, kind, key, build, func(data []byte, unlock func()) {
		defer unlock()
		c.keep(kind, key, data)
	})
}

// DoBehind is Do, but it returns what build made, up to 4 MiB, while that is stored in the background, which takes longer than to build
// small things. Whoever requests the entry meanwhile waits for that. What a killed process has not stored is built again.
func (c *Cache) DoBehind(ctx context.Context, kind, key string, build func() ([]byte, error)) ([]byte, error) {
	return c.do(ctx, kind, key, build, func(data []byte, unlock func()) {
		store := func(data []byte) {
			defer unlock()
			c.keep(kind, key, data)
		}
		if len(data) > maxBehind {
			store(data)
			return
		}
		select {
		case c.storing <- struct{}{}:
			data = bytes.Clone(data) // the other is the caller's
			go func() {
				defer func() { <-c.storing }()
				store(data)
			}()
		default:
			store(data)
		}
	})
}

func (c *Cache) do(ctx context.Context, kind, key string, build func() ([]byte, error), store func(data []byte, unlock func())) ([]byte, error) {
	if data, ok, err := c.Get(kind, key); ok {
		return data, nil
	} else if err != nil {
		c.log.Warn("cache is not readable", "kind", kind, "error", err)
	}
	unlock, err := c.lock(ctx, kind, key)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("cache: wait for another build of %s: %w", kind, context.Cause(ctx))
	}
	if err != nil {
		c.log.Warn("cache entry is built without a lock", "kind", kind, "error", err)
		return build()
	}
	built := false
	defer func() {
		if !built { // or it panics
			unlock()
		}
	}()
	if data, ok, _ := c.Get(kind, key); ok {
		return data, nil
	}
	data, err := build()
	if err != nil {
		return nil, err
	}
	built = true
	store(data, unlock)
	return data, nil
}

func (c *Cache) keep(kind, key string, data []byte) {
	if err := c.Put(kind, key, data); err != nil {
		c.log.Warn("cache entry was not kept", "kind", kind, "error", err)
	}
}

// lock holds an entry's lock file. Two open files of one process exclude each other too, so goroutines need no lock of
// their own.
func (c *Cache) lock(ctx context.Context, kind, key string) (unlock func(), err error) {
	if err := makeFolder(c.root, locks); err != nil {
		return nil, err
	}
	name := c.fileName(kind, key)
	for {
		l := c.lockFile(name)
		if err := private.ClearLock(l.Path()); err != nil {
			return nil, err
		}
		if _, err := l.TryLockContext(ctx, lockRetry); err != nil {
			return nil, errors.Join(err, l.Close())
		}
		if c.current(l) {
			return func() { c.unlock(l) }, nil
		}
		if err := l.Close(); err != nil { // its holder has removed the file: try with the next one
			return nil, err
		}
	}
}

func (c *Cache) lockFile(name string) *flock.Flock {
	return flock.New(filepath.Join(c.dir, locks, name), flock.SetPermissions(0o600))
}

// current reports whether the file of a lock that is held still has its name. If not, the lock excludes no one.
func (c *Cache) current(l *flock.Flock) bool {
	held, err := l.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(l.Path())
	return err == nil && os.SameFile(held, named)
}

// unlock removes the file of a lock, which must be held and current, and then releases it.
func (c *Cache) unlock(l *flock.Flock) {
	if err := errors.Join(os.Remove(l.Path()), l.Close()); err != nil {
		c.log.Warn("cache lock was not released", "error", err)
	}
}

// mac authenticates a record: its name, and the length and digest of its content. purpose separates this use of the key from others.
func (c *Cache) mac(purpose, kind, key string, lengthAndDigest []byte) []byte {
	h := hmac.New(sha256.New, c.key)
	for _, s := range []string{purpose, kind, key} {
		_ = binary.Write(h, binary.BigEndian, uint64(len(s)))
		h.Write([]byte(s))
	}
	h.Write(lengthAndDigest)
	return h.Sum(nil)
}

func (c *Cache) readRecord(name string) ([]byte, error) {
	f, err := openRegular(c.root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	record, err := io.ReadAll(io.LimitReader(f, recordSize+1))
	if err != nil {
		return nil, err
	}
	if len(record) != recordSize {
		return nil, &forgedError{"the record has the wrong size", name}
	}
	return record, nil
}

// openObject opens the content that an authentic record names and verifies it through the descriptor it returns.
func (c *Cache) openObject(kind, key string, record []byte) (_ *os.File, err error) {
	const macAt = recordSize - sha256.Size
	length, digest := binary.BigEndian.Uint64(record), record[8:macAt]
	name, _ := c.recordName(kind, key)
	if !hmac.Equal(record[macAt:], c.mac(entryMAC, kind, key, record[:macAt])) {
		return nil, &forgedError{"the MAC does not match", name}
	}
	name = objectName(digest)
	f, err := openRegular(c.root, name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if uint64(info.Size()) != length {
		return nil, &forgedError{"the content has the wrong length", name}
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, info.Size()+1)); err != nil {
		return nil, err
	}
	if !bytes.Equal(h.Sum(nil), digest) {
		return nil, &forgedError{"the content was changed", name}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return f, nil
}

// forgedError reports a file in the folder that we did not put there.
type forgedError struct{ reason, name string }

func (e *forgedError) Error() string { return e.reason }

var kindPattern = lazyregexp.New(`^[a-z][a-z0-9-]{0,31}$`)

func (c *Cache) recordName(kind, key string) (string, error) {
	if !kindPattern.MatchString(kind) || kind == objects || kind == locks {
		return "", fmt.Errorf("cache: %q is not a kind of entry", kind)
	}
	return filepath.Join(kind, c.fileName(kind, key)), nil
}

// Tag returns a name for a text, from which nobody without the key learns the text. Kinds of texts have other names.
func (c *Cache) Tag(kind, text string) string { return c.fileName(kind, text) }

// fileName names an entry so that entries of different MAC keys never collide.
func (c *Cache) fileName(kind, key string) string {
	return hex.EncodeToString(c.mac(nameMAC, kind, key, nil))
}

func objectName(digest []byte) string { return filepath.Join(objects, hex.EncodeToString(digest)) }

// openRegular opens a regular file without following a link. It checks
// that the file it opened is the one that the name referred to before.
func openRegular(root *os.Root, name string) (*os.File, error) {
	before, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, &forgedError{"it is not a regular file", name}
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = &forgedError{"it is not a regular file", name}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// replace puts data under name in one step. durable makes it survive a power failure. Entries do not need that, because they are
// verified when they are read.
func replace(root *os.Root, name string, data []byte, durable bool) error {
	if err := makeFolder(root, filepath.Dir(name)); err != nil {
		return err
	}
	if info, err := root.Lstat(name); err == nil && info.IsDir() {
		if err := root.RemoveAll(name); err != nil { // a folder in place of a file would make the rename fail
			return err
		}
	}
	return atomicfile.Replace(root, name, filepath.Join(filepath.Dir(name), temporary+rand.Text()), data, 0o600, durable)
}

// makeFolder makes a folder of the cache. It removes a link or file in its place, which is not ours.
func makeFolder(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err == nil && info.IsDir() {
		return nil
	}
	if err == nil {
		if err := root.Remove(name); err != nil {
			return err
		}
	}
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
