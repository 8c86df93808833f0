package kv

import (
	"context"

	"github.com/stilehost/stile/internal/sqlite"
)

// Kept is a bucket that has entries.
type Kept struct {
	Name string
	Keys int64
	// Bytes is what its entries take, as for [Options].BucketBytes.
	Bytes int64
}

// Buckets returns the buckets that have entries, in byte order of their names.
func (s *Store) Buckets(ctx context.Context) (all []Kept, err error) {
	err = s.db.View(ctx, func(c *sqlite.Conn) error {
		for row, err := range c.Rows(ctx, "SELECT bucket, keys, bytes FROM usage ORDER BY bucket") {
			var k Kept
			if err == nil {
				err = row.Scan(&k.Name, &k.Keys, &k.Bytes)
			}
			if err != nil {
				return err
			}
			all = append(all, k)
		}
		return nil
	})
	return all, err
}

// What one transaction of Remove deletes, at most. An entry may have more bytes.
const (
	removedAtOnce = 250
	removedBytes  = 1 << 20
)

// Remove deletes all entries of a bucket, some in each transaction. If it is interrupted, the others stay. What a call writes meanwhile may
// stay too.
func (s *Store) Remove(ctx context.Context, bucket string) error {
	for more := true; more; {
		if err := s.db.Update(ctx, func(c *sqlite.Conn) error {
			var last []byte
			var keys, bytes int64
			for row, err := range c.Rows(ctx, "SELECT key, size FROM entry WHERE bucket = ? ORDER BY key LIMIT ?", bucket, removedAtOnce) {
				var size int64
				if err == nil {
					err = row.Scan(&last, &size)
				}
				if err != nil {
					return err
				}
				keys++
				if bytes += size; bytes >= removedBytes {
					break
				}
			}
			if more = keys > 0; !more {
				return nil
			}
			_, err := c.Exec(ctx, "DELETE FROM entry WHERE bucket = ? AND key <= ?", bucket, last)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
