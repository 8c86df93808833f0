package kv

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/stores"
	"github.com/stilehost/stile/internal/sqlite"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/kv.wit.
const Interface = "stile:capability/kv@0.1.0"

const (
	// maxPage is how many entries a page has at most.
	maxPage = 1000
	// pageBytes ends a page early, once its keys and values take this many bytes.
	pageBytes = 1 << 20
	// entryBytes is what an entry of a page takes besides.
	entryBytes = 400
)

// Bucket is the right to read and change one bucket. It is safe for concurrent use and lives as long as its store.
//
// Keys are non-empty UTF-8 text, values UTF-8 text. Every method returns [abi.ErrInvalid] for a key or value that is not,
// [abi.ErrExhausted] above a limit, and [abi.ErrUnavailable] for a fault of the disk.
type Bucket struct {
	store *Store
	name  string
}

// Entry is a key and its value.
type Entry struct {
	Key   string
	Value string
}

// Page is a part of a listing. Cursor is set if more entries follow.
type Page struct {
	Entries []Entry
	Cursor  *string
}

// Interface implements [abi.Capability].
func (b *Bucket) Interface() string { return Interface }

// Repeat implements [abi.Repeatable]: every change comes about once.
func (*Bucket) Repeat(function string, _ []abi.Value) abi.Repeat {
	if function == "bucket.get" || function == "bucket.list" {
		return abi.Reads
	}
	return abi.Repeats
}

// Quick implements [abi.Quick].
func (*Bucket) Quick() []string { return []string{"bucket.get", "bucket.list"} }

// Lists implements [abi.Bounded].
func (*Bucket) Lists() map[string]int {
	return map[string]int{"bucket.list.result.entries": maxPage}
}

// Get returns the value of key, nil when there is none.
func (b *Bucket) Get(ctx context.Context, key string) (*string, error) {
	if err := b.checkKey(key); err != nil {
		return nil, err
	}
	var value *string
	err := abi.WithinRoom(ctx, func(room int64) (wants int64, err error) {
		err = b.store.db.Read(ctx, func(c *sqlite.Conn) (err error) {
			// A lookup takes less time than starting a goroutine that watches ctx.
			value, err = b.value(context.WithoutCancel(ctx), c, key)
			return err
		})
		if err == nil && value != nil && int64(len(*value)) > room {
			wants, value = int64(len(*value)), nil
		}
		return wants, err
	})
	if err == nil && value != nil {
		err = abi.Charge(ctx, len(*value))
	}
	if err != nil {
		return nil, err
	}
	return value, nil
}

// Set stores value under key.
func (b *Bucket) Set(ctx context.Context, key, value string) error {
	if err := cmp.Or(b.checkKey(key), b.checkValue(value)); err != nil {
		return err
	}
	if err := abi.Charge(ctx, len(key)+len(value)); err != nil {
		return err
	}
	_, err := sqlite.Once(ctx, b.store.db, func(c *sqlite.Conn) (struct{}, error) { return struct{}{}, b.put(ctx, c, key, value) })
	return err
}

// Delete removes key and reports whether it was there.
func (b *Bucket) Delete(ctx context.Context, key string) (bool, error) {
	if err := b.checkKey(key); err != nil {
		return false, err
	}
	return sqlite.Once(ctx, b.store.db, func(c *sqlite.Conn) (bool, error) { return b.remove(ctx, c, key) })
}

// List returns entries whose key starts with prefix, in byte order: at most limit, at most 1,000, and fewer if the values are large.
// cursor continues after an earlier page of the same prefix.
func (b *Bucket) List(ctx context.Context, prefix string, limit uint32, cursor *string) (Page, error) {
	from, err := start(prefix, cursor)
	switch {
	case err != nil:
		return Page{}, err
	case !utf8.ValidString(prefix):
		return Page{}, abi.Errorf(abi.CodeInvalid, "prefix: not UTF-8")
	case len(prefix) > b.store.options.KeyBytes:
		return Page{}, exhausted("bytes in a prefix", int64(b.store.options.KeyBytes), int64(len(prefix)))
	case limit == 0:
		return Page{}, stores.ErrNoLimit
	}
	limit = min(limit, maxPage)
	var page Page
	size := 0
	err = abi.WithinRoom(ctx, func(room int64) (wants int64, err error) {
		page, size = Page{}, 0
		err = b.store.db.Read(ctx, func(c *sqlite.Conn) error {
			// UTF-8 has no byte 0xff, so prefix + 0xff comes after every key that starts with prefix.
			for row, err := range c.Rows(ctx, `SELECT key, value FROM entry WHERE bucket = ? AND key >= ? AND key < ? ORDER BY key`,
				b.name, []byte(from), []byte(prefix+"\xff")) {
				if err != nil {
					return err
				}
				if len(page.Entries) == int(limit) || size >= pageBytes {
					last := page.Entries[len(page.Entries)-1].Key
					page.Cursor = new(base64.RawURLEncoding.EncodeToString([]byte(last)))
					break
				}
				var e Entry
				if err := row.Scan(&e.Key, &e.Value); err != nil {
					return err
				}
				page.Entries = append(page.Entries, e)
				size += len(e.Key) + len(e.Value)
				if wants = int64(size + len(page.Entries)*entryBytes); wants > room {
					o := b.store.options
					page, wants = Page{}, max(wants, int64(pageBytes+o.KeyBytes+o.ValueBytes)+int64(limit)*entryBytes)
					break
				}
			}
			return nil
		})
		return wants, err
	})
	if err == nil {
		err = abi.Charge(ctx, size)
	}
	if err != nil {
		return Page{}, err
	}
	return page, nil
}

// Increment adds delta to the decimal integer under key, which is 0 if absent, and returns the sum. The error is [abi.ErrInvalid] if
// the value or the sum is not a 64-bit integer.
func (b *Bucket) Increment(ctx context.Context, key string, delta int64) (int64, error) {
	if err := b.checkKey(key); err != nil {
		return 0, err
	}
	return sqlite.Once(ctx, b.store.db, func(c *sqlite.Conn) (int64, error) {
		value, err := b.value(ctx, c, key)
		if err != nil {
			return 0, err
		}
		n := int64(0)
		if value != nil {
			if n, err = strconv.ParseInt(*value, 10, 64); err != nil {
				return 0, abi.Errorf(abi.CodeInvalid, "the value of %q is not a 64-bit decimal integer", key)
			}
		}
		if delta > 0 && n > math.MaxInt64-delta || delta < 0 && n < math.MinInt64-delta {
			return 0, abi.Errorf(abi.CodeInvalid, "%d + %d does not fit 64 bits", n, delta)
		}
		return n + delta, b.put(ctx, c, key, strconv.FormatInt(n+delta, 10))
	})
}

// CompareAndSet sets key to value, or removes it if value is nil, if its current value is expected. A nil expected means absent. It
// reports whether it did.
func (b *Bucket) CompareAndSet(ctx context.Context, key string, expected, value *string) (bool, error) {
	err := b.checkKey(key)
	if err == nil && value != nil {
		if err = b.checkValue(*value); err == nil {
			err = abi.Charge(ctx, len(key)+len(*value))
		}
	}
	if err != nil {
		return false, err
	}
	return sqlite.Once(ctx, b.store.db, func(c *sqlite.Conn) (bool, error) {
		current, err := b.value(ctx, c, key)
		if err != nil {
			return false, err
		}
		same := current == nil && expected == nil || current != nil && expected != nil && *current == *expected
		switch {
		case !same:
			return false, nil
		case value != nil:
			err = b.put(ctx, c, key, *value)
		default:
			_, err = b.remove(ctx, c, key)
		}
		return true, err
	})
}

func (b *Bucket) value(ctx context.Context, c *sqlite.Conn, key string) (*string, error) {
	var value string
	err := c.Row(ctx, `SELECT value FROM entry WHERE bucket = ? AND key = ?`, b.name, []byte(key)).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &value, err
}

// put sets a value and enforces the limits of the bucket. A bucket
// that already exceeds one, because the limit was lowered, can still
// shrink.
func (b *Bucket) put(ctx context.Context, c *sqlite.Conn, key, value string) error {
	keys, bytes, err := b.usage(ctx, c)
	if err != nil {
		return err
	}
	if _, err := c.Exec(ctx, `INSERT INTO entry VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value`,
		b.name, []byte(key), value); err != nil {
		return err
	}
	newKeys, newBytes, err := b.usage(ctx, c)
	switch limits := b.store.options; {
	case err != nil:
		return err
	case newKeys > limits.Keys && newKeys > keys:
		return exhausted("keys in the bucket", limits.Keys, newKeys)
	case newBytes > limits.BucketBytes && newBytes > bytes:
		return exhausted("bytes in the bucket", limits.BucketBytes, newBytes)
	case limits.Room == nil || newBytes <= bytes && newKeys <= keys:
		return nil
	default:
		_, err = stores.CheckRoom(ctx, c, limits.Room(), "buckets", b.name, 0)
		return err
	}
}

func (b *Bucket) usage(ctx context.Context, c *sqlite.Conn) (keys, bytes int64, err error) {
	err = c.Row(ctx, `SELECT keys, bytes FROM usage WHERE bucket = ?`, b.name).Scan(&keys, &bytes)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return keys, bytes, err
}

func (b *Bucket) remove(ctx context.Context, c *sqlite.Conn, key string) (bool, error) {
	r, err := c.Exec(ctx, `DELETE FROM entry WHERE bucket = ? AND key = ?`, b.name, []byte(key))
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

func (b *Bucket) checkKey(key string) error {
	switch limit := b.store.options.KeyBytes; {
	case key == "":
		return abi.Errorf(abi.CodeInvalid, "key: empty")
	case len(key) > limit:
		return exhausted("bytes in a key", int64(limit), int64(len(key)))
	case !utf8.ValidString(key):
		return abi.Errorf(abi.CodeInvalid, "key: not UTF-8")
	}
	return nil
}

func (b *Bucket) checkValue(value string) error {
	switch limit := b.store.options.ValueBytes; {
	case len(value) > limit:
		return exhausted("bytes in a value", int64(limit), int64(len(value)))
	case !utf8.ValidString(value):
		return abi.Errorf(abi.CodeInvalid, "value: not UTF-8")
	}
	return nil
}

func exhausted(what string, limit, needed int64) error {
	return stores.Exhausted("kv: "+what, limit, needed)
}

// start returns where a page starts: the prefix, or the next possible key after the one in cursor. A cursor is the last key of a
// page, encoded. One that could not come from a listing of this prefix is refused.
func start(prefix string, cursor *string) (string, error) {
	if cursor == nil {
		return prefix, nil
	}
	key, err := base64.RawURLEncoding.Strict().DecodeString(*cursor)
	if err != nil || len(key) == 0 || !utf8.Valid(key) || !strings.HasPrefix(string(key), prefix) {
		return "", abi.Errorf(abi.CodeInvalid, "cursor: not from an earlier page of this listing")
	}
	return string(key) + "\x00", nil
}
