package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/sqlite"
)

const (
	// stagedAtOnce is how many pieces of a large content one transaction writes. A smaller content is written in the transaction
	// that gives it to a file.
	stagedAtOnce = 32
	// stagedFor is how long a content under construction is kept without a sign of life.
	stagedFor = time.Hour
)

// staged is a content in a store that belongs to no file yet.
type staged struct {
	io.Reader // nil: the content is already written
	store     *Store
	id, size  int64
	from      int64 // the content that it begins with, if shared is not 0
	shared    int64 // pieces
}

// stage writes a large content to the store before the transaction that gives it to a file. It returns small contents, and contents
// for a disk, unchanged, and refuses one that does not fit. If no file gets it, drop deletes it.
func (d *Directory) stage(ctx context.Context, operation, path string, size int64, content io.Reader) (_ io.Reader, drop func(), err error) {
	v, ok := d.volume.(*stored)
	if !ok || size <= stagedAtOnce*chunkSize {
		return content, func() {}, nil
	}
	err = d.view(ctx, operation, func(o *op) error {
		_, n, err := o.fileOrNone(path)
		if err != nil {
			return err
		}
		return o.files.(*tree).roomSoon(n, size)
	})
	if err != nil {
		return nil, nil, err
	}
	s := &staged{store: v.store, size: size}
	drop = func() { _ = s.drop(context.WithoutCancel(ctx)) } // otherwise a later sweep finds it
	if err := s.write(ctx, content); err != nil {
		drop()
		return nil, nil, err
	}
	return s, drop, nil
}

func (s *staged) write(ctx context.Context, content io.Reader) error {
	err := s.store.db.Update(ctx, func(c *sqlite.Conn) (err error) {
		if s.id, err = newContent(ctx, c); err != nil {
			return err
		}
		if _, err = c.Exec(ctx, `INSERT INTO content (id, size) VALUES (?, ?)`, s.id, s.size); err != nil {
			return err
		}
		if _, err = c.Exec(ctx, `INSERT INTO garbage VALUES (?, ?)`, s.id, time.Now().Add(stagedFor).UnixMilli()); err != nil || s.shared == 0 {
			return err
		}
		var there bool
		if err := c.Row(ctx, `SELECT EXISTS (SELECT 1 FROM content WHERE id = ?)`, s.from).Scan(&there); err != nil {
			return err
		}
		if !there {
			return errChanged
		}
		return (&tree{ctx: ctx, long: ctx, conn: c, batch: s.store.batch}).share(s.id, s.from, s.shared)
	})
	buffer := make([]byte, min(s.size, stagedAtOnce*chunkSize))
	for at := s.shared; at*chunkSize < s.size && err == nil; at += stagedAtOnce {
		data := buffer[:min(int64(len(buffer)), s.size-at*chunkSize)]
		if _, err = io.ReadFull(content, data); err != nil {
			return err
		}
		var digests [stagedAtOnce][sha256.Size]byte
		for i := range digests[:pieces(len(data))] {
			digests[i] = sha256.Sum256(piece(data, i))
		}
		err = s.store.db.Update(ctx, func(c *sqlite.Conn) error {
			for i, digest := range digests[:pieces(len(data))] {
				if err := addPart(ctx, c, s.id, at+int64(i), piece(data, i), digest); err != nil {
					return err
				}
			}
			return s.touch(ctx, c, `UPDATE garbage SET since = ?2 WHERE content = ?1`, time.Now().Add(stagedFor).UnixMilli())
		})
	}
	return err
}

// appendLarge is append, to a workspace, of more bytes than one transaction
// can hold: it writes the new content before that transaction. The error is
// errChanged if others have changed the file meanwhile.
func (d *Directory) appendLarge(ctx context.Context, v *stored, path, text string) error {
	var before *node
	var rest []byte
	s := &staged{store: v.store, size: int64(len(text))}
	err := d.view(ctx, "append", func(o *op) error {
		t := o.files.(*tree)
		place, n, err := o.fileOrNone(path)
		if before = n; err == nil && n != nil {
			s.size, s.from = s.size+int64(n.status.Size), n.bytes
			if n.status.Size > chunkSize {
				s.shared = int64(n.status.Size / chunkSize)
			}
			for piece, failed := range t.content(place, n, s.shared*chunkSize) {
				rest, err = append(rest, piece...), errors.Join(err, failed)
			}
		}
		if err != nil {
			return err
		}
		return t.roomSoon(n, s.size)
	})
	if err != nil {
		return err
	}
	err = s.write(ctx, io.MultiReader(bytes.NewReader(rest), strings.NewReader(text)))
	if err == nil {
		err = d.update(ctx, "append", func(o *op) error {
			place, n, err := o.target(path)
			if err != nil {
				return err
			}
			if (n == nil) != (before == nil) || n != nil && !n.holds(before) {
				return errChanged
			}
			return o.put(place, n, s.size, s)
		})
	}
	if err != nil {
		_ = s.drop(context.WithoutCancel(ctx)) // otherwise a later sweep finds it
	}
	return err
}

func pieces(size int) int { return (size + chunkSize - 1) / chunkSize }

func piece(data []byte, i int) []byte { return data[i*chunkSize : min((i+1)*chunkSize, len(data))] }

// touch updates the row that says that the content is being written.
func (s *staged) touch(ctx context.Context, c *sqlite.Conn, statement string, args ...any) error {
	r, err := c.Exec(ctx, statement, append([]any{s.id}, args...)...)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, abi.Errorf(abi.CodeUnavailable, "writing the content took too long, so it was discarded; write it again"))
	}
	return nil
}

// adopt gives a staged content to n, or to a new file.
func (t *tree) adopt(path string, n *node, s *staged) error {
	if err := s.touch(t.ctx, t.conn, `DELETE FROM garbage WHERE content = ?`); err != nil {
		return err
	}
	return t.assign(path, n, s.id, s.size)
}

func (s *staged) drop(ctx context.Context) error {
	if err := s.store.db.Update(ctx, func(c *sqlite.Conn) error {
		_, err := c.Exec(ctx, `UPDATE garbage SET since = 0 WHERE content = ?`, s.id)
		return err
	}); err != nil {
		return err
	}
	return s.store.sweep(ctx)
}
