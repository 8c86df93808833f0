package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/internal/stores"
)

// maxEntries is the most entries in a page.
const maxEntries = 1000

// EntryKind distinguishes files, directories and links: the enum `kind` of stile:capability/workspace.
type EntryKind uint8

// The kinds, in the order of the enum.
const (
	KindFile EntryKind = iota
	KindDirectory
	KindLink
)

// String is the kind's name in the enum.
func (k EntryKind) String() string { return [...]string{"file", "directory", "link"}[k] }

// Status is what is known about a file, a directory or a link without reading it.
type Status struct {
	Kind EntryKind
	// Size is in bytes. It is 0 except for files.
	Size uint64
	// Modified is when the content was last written, or the directory or link was made: milliseconds since 1970-01-01T00:00:00Z.
	Modified uint64
	// Mode has the permission bits, at most 0o777.
	Mode uint32
}

// Entry is a name in a directory.
type Entry struct {
	Name   string
	Status Status
}

// Page is a part of a listing. Cursor is set if more entries follow.
type Page struct {
	Entries []Entry
	Cursor  *string
}

// Read returns the whole file. The error is [abi.ErrTooLarge] above 16 MiB and [abi.ErrInvalid] if it is not UTF-8.
func (d *Directory) Read(ctx context.Context, path string) (string, error) {
	return d.readText(ctx, path, func(f openFile, room int64) (text string, wants int64, err error) {
		if size := f.n.status.Size; size > uint64(room) && size <= abi.MaxText {
			return "", int64(size), nil
		}
		text, err = f.text(room)
		if errors.Is(err, errGrown) {
			return "", abi.MaxText, nil
		}
		return text, 0, err
	})
}

// errGrown says that a file on disk has grown while it was read, so that its text has no room.
var errGrown = errors.New("the file has grown")

// Whole is a file at one moment.
type Whole struct {
	// Text is nil if the file is larger than was asked for, or not UTF-8.
	Text *string
	// Digest is as [blob.Blob.Digest] returns it.
	Digest string
	// Size is in bytes.
	Size uint64
}

// ReadWithDigest returns the file's digest, and its text if it has at most max bytes, 16 MiB at the most.
func (d *Directory) ReadWithDigest(ctx context.Context, path string, max uint64) (Whole, error) {
	max = min(max, abi.MaxText)
	var whole Whole
	_, err := d.readText(ctx, path, func(f openFile, room int64) (_ string, wants int64, err error) {
		if size := f.n.status.Size; size > uint64(room) && size <= max {
			return "", int64(size), nil
		}
		whole, err = f.whole(max, room)
		if errors.Is(err, errGrown) {
			return "", abi.MaxText, nil
		}
		return "", 0, err
	})
	if err != nil {
		return Whole{}, err
	}
	return whole, nil
}

// whole is the file with its text, if it has at most this many bytes. It is errGrown if there is no room for the text.
func (f openFile) whole(most uint64, room int64) (w Whole, err error) {
	size := f.n.status.Size
	if err := abi.Charge(f.o.ctx, int(size)); err != nil {
		return Whole{}, err
	}
	sum := sha256.New()
	var text strings.Builder
	if size <= most {
		text.Grow(int(size))
	}
	for piece, err := range f.o.content(f.place, f.n, 0) {
		if err == nil {
			err = f.o.ctx.Err() // on disk, a file can grow while it is read
		}
		before := w.Size
		if w.Size += uint64(len(piece)); err == nil && w.Size > max(size, before) {
			err = abi.Charge(f.o.ctx, int(w.Size-max(size, before)))
		}
		if err != nil {
			return Whole{}, err
		}
		sum.Write(piece)
		if w.Size <= most && size <= most {
			if w.Size > uint64(room) {
				return Whole{}, errGrown
			}
			text.Write(piece)
		}
	}
	w.Digest = blob.Digest(sum.Sum(nil))
	if all := text.String(); w.Size <= most && size <= most && utf8.ValidString(all) {
		w.Text = &all
	}
	return w, nil
}

// openFile is a file that an operation found.
type openFile struct {
	o           *op
	place, path string
	n           *node
}

// readText returns the text that read makes of a file. If a text would exceed room, read returns the size that it wants instead, and
// is called again once there is room. read never waits for room, because other operations wait for the store meanwhile.
func (d *Directory) readText(ctx context.Context, path string, read func(f openFile, room int64) (text string, wants int64, err error)) (text string, err error) {
	err = abi.WithinRoom(ctx, func(room int64) (wants int64, err error) {
		err = d.inspect(ctx, d.resolveFile, "read", path, func(o *op, path string) error {
			place, n, err := o.file(path)
			if err == nil {
				text, wants, err = read(openFile{o, place, path, n}, room)
			}
			return err
		})
		return wants, err
	})
	if err != nil {
		return "", err
	}
	return text, nil
}

// text returns a whole file as UTF-8.
func (o *op) text(path string) (string, error) {
	place, n, err := o.file(path)
	if err != nil {
		return "", err
	}
	return openFile{o, place, path, n}.text(abi.MaxText)
}

// text returns the whole file as UTF-8. The error is errGrown if there is no room for it.
func (f openFile) text(room int64) (string, error) {
	size := f.n.status.Size
	if size > abi.MaxText {
		return "", abi.TooLarge(size, textLimit)
	}
	if err := abi.Charge(f.o.ctx, int(size)); err != nil {
		return "", err
	}
	var text strings.Builder
	text.Grow(int(size))
	for piece, err := range f.o.content(f.place, f.n, 0) {
		if err != nil {
			return "", err
		}
		before := text.Len()
		switch now := before + len(piece); { // on disk, a file can grow while it is read
		case now > abi.MaxText:
			return "", abi.TooLarge(abi.MaxText, textLimit)
		case int64(now) > room:
			return "", errGrown
		case now > max(int(size), before):
			if err := abi.Charge(f.o.ctx, now-max(int(size), before)); err != nil {
				return "", err
			}
		}
		text.Write(piece)
	}
	if !utf8.ValidString(text.String()) {
		return "", invalid(f.path, "is not UTF-8 text; read-bytes and read-blob read any file")
	}
	return text.String(), nil
}

// lines returns where lines begin and end, so that their text is not copied as it grows. Both are 0 if there are none.
func (f openFile) lines(from uint32, to *uint32) (start, end int64, err error) {
	start = -1
	line := uint64(1)
	for chunk, err := range f.o.content(f.place, f.n, 0) {
		if err != nil {
			return 0, 0, err
		}
		for len(chunk) > 0 && (to == nil || line <= uint64(*to)) {
			if line >= uint64(from) && start < 0 {
				start = end
			}
			size := bytes.IndexByte(chunk, '\n') + 1
			if size == 0 {
				size = len(chunk)
			} else {
				line++
			}
			end += int64(size)
			chunk = chunk[size:]
		}
		if start >= 0 && end-start > abi.MaxText {
			return 0, 0, abi.TooLarge(abi.MaxText, textLimit)
		}
		if to != nil && line > uint64(*to) {
			break
		}
	}
	if start < 0 {
		return 0, 0, nil
	}
	return start, end, nil
}

// slice returns the bytes from start to end.
func (f openFile) slice(start, end int64) (string, error) {
	size := int(end - start)
	if err := abi.Charge(f.o.ctx, size); err != nil {
		return "", err
	}
	var text strings.Builder
	text.Grow(size)
	for chunk, err := range f.o.content(f.place, f.n, start) {
		if err != nil {
			return "", err
		}
		if text.Write(chunk[:min(len(chunk), size-text.Len())]); text.Len() == size {
			break
		}
	}
	return text.String(), nil
}

// ReadLines returns the lines from and to, both counted from 1 and included, each with its line feed. A nil to means the end of the
// file. Lines beyond the end are empty. The errors are those of Read, for the part that is read.
func (d *Directory) ReadLines(ctx context.Context, path string, from uint32, to *uint32) (string, error) {
	switch {
	case from == 0:
		return "", abi.Errorf(abi.CodeInvalid, "line 0: the first line is 1")
	case to != nil && *to < from:
		return "", abi.Errorf(abi.CodeInvalid, "lines %d to %d", from, *to)
	}
	text, err := d.readText(ctx, path, func(f openFile, room int64) (text string, wants int64, err error) {
		start, end, err := f.lines(from, to)
		if wants = end - start; err != nil || wants == 0 || wants > room {
			return "", wants, err
		}
		text, err = f.slice(start, end)
		return text, 0, err
	})
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(text) {
		return "", abi.Errorf(abi.CodeInvalid, "these lines of %s are not UTF-8 text; read-bytes and read-blob read any file", path)
	}
	return text, nil
}

// ReadBytes returns length bytes starting at offset, fewer at the end of the file and none beyond it. Above 262,144 bytes the error
// is [abi.ErrTooLarge].
func (d *Directory) ReadBytes(ctx context.Context, path string, offset uint64, length uint32) ([]byte, error) {
	if length > abi.MaxBytes {
		return nil, abi.TooLarge(uint64(length), bytesLimit)
	}
	data := []byte{}
	err := d.inspect(ctx, d.resolveFile, "read", path, func(o *op, path string) error {
		place, n, err := o.file(path)
		if err != nil || offset >= n.status.Size || length == 0 {
			return err
		}
		want := int(min(uint64(length), n.status.Size-offset))
		if err := abi.Charge(ctx, want); err != nil {
			return err
		}
		for piece, err := range o.content(place, n, int64(offset)) {
			if err != nil {
				return err
			}
			data = append(data, piece[:min(len(piece), want-len(data))]...)
			if len(data) == want {
				break
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// ReadBlob returns the current file. Later changes do not affect the blob, which the caller closes.
func (d *Directory) ReadBlob(ctx context.Context, path string) (*blob.Blob, error) {
	var content *blob.Blob
	err := d.inspect(ctx, d.resolveFile, "read", path, func(o *op, path string) error {
		place, n, err := o.file(path)
		if err == nil {
			content, err = collect(ctx, n.status.Size, d.volume.blobs(), o.content(place, n, 0))
		}
		return err
	})
	return whole(content, err)
}

// whole is a blob that was read without an error.
func whole(content *blob.Blob, err error) (*blob.Blob, error) {
	if err != nil && content != nil { // the transaction failed after the copy was made
		_ = content.Close()
		content = nil
	}
	return content, err
}

// collect makes a blob of pieces.
func collect(ctx context.Context, size uint64, options blob.Options, pieces iter.Seq2[[]byte, error]) (*blob.Blob, error) {
	if err := abi.Charge(ctx, int(size)); err != nil {
		return nil, err
	}
	options.Limit = max(int64(size), 1)
	b := blob.NewBuilder(options)
	defer func() { _ = b.Close() }() // drops what did not become a blob
	for piece, err := range pieces {
		if err != nil {
			return nil, err
		}
		if _, err := b.Write(piece); err != nil {
			return nil, err
		}
	}
	return b.Blob()
}

// perEntry is what an entry of a page takes besides its name.
const perEntry = 900

// List returns the entries of one directory in byte order of their names: at most limit, at most 1,000. cursor continues
// after an earlier page.
func (d *Directory) List(ctx context.Context, path string, limit uint32, cursor *string) (Page, error) {
	if limit == 0 {
		return Page{}, stores.ErrNoLimit
	}
	after, err := position(cursor)
	if err != nil {
		return Page{}, err
	}
	limit = min(limit, maxEntries)
	var page Page
	err = abi.WithinRoom(ctx, func(room int64) (wants int64, err error) {
		err = d.inspect(ctx, d.resolve, "list", path, func(o *op, path string) error {
			place, err := o.directory(path)
			if err != nil {
				return err
			}
			all, err := o.entries(place, after, int(limit)+1)
			page.Entries = nil
			for _, e := range all {
				page.Entries = append(page.Entries, e.Entry)
			}
			return err
		})
		for _, e := range page.Entries {
			wants += perEntry + int64(len(e.Name))
		}
		if wants > room {
			page.Entries = nil
		}
		return wants, err
	})
	if err != nil {
		return Page{}, err
	}
	if len(page.Entries) > int(limit) {
		page.Entries = page.Entries[:limit]
		page.Cursor = new(base64.RawURLEncoding.EncodeToString([]byte(page.Entries[limit-1].Name)))
	}
	return page, nil
}

// position returns the name after which a page starts, "" for the first page. A cursor is that name, encoded. A cursor that could
// not be a name is refused.
func position(cursor *string) (string, error) {
	if cursor == nil {
		return "", nil
	}
	name, err := base64.RawURLEncoding.Strict().DecodeString(*cursor)
	if err != nil || len(name) == 0 || !utf8.Valid(name) || bytes.IndexByte(name, '/') >= 0 || checkName(string(name)) != nil {
		return "", abi.Errorf(abi.CodeInvalid, "cursor: not from an earlier page of this listing")
	}
	return string(name), nil
}

// Stat describes the node at a path. It describes a link itself, not its target.
func (d *Directory) Stat(ctx context.Context, path string) (Status, error) {
	var status Status
	err := d.inspect(ctx, d.resolve, "stat", path, func(o *op, path string) error {
		_, n, err := o.get(path, false)
		if err == nil {
			status = n.status
		}
		return err
	})
	return status, err
}
