package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
)

// Write replaces the file with UTF-8 text of at most 16 MiB. It makes the file and its parent directories if they are missing.
func (d *Directory) Write(ctx context.Context, path, text string) error {
	if err := checkText(text); err != nil {
		return err
	}
	return d.write(ctx, path, int64(len(text)), strings.NewReader(text))
}

// WriteBytes is Write for at most 262,144 bytes of any kind.
func (d *Directory) WriteBytes(ctx context.Context, path string, data []byte) error {
	if err := checkBytes(data); err != nil {
		return err
	}
	return d.write(ctx, path, int64(len(data)), bytes.NewReader(data))
}

// WriteBlob is Write for the content of a blob.
func (d *Directory) WriteBlob(ctx context.Context, path string, source *blob.Blob) error {
	return d.write(ctx, path, int64(source.Size(ctx)), source.Reader())
}

// Replace is Write for a file whose content has this digest, as [blob.Blob.Digest] returns it, or, without a digest, for a file that
// does not exist. The error is [abi.ErrConflict] otherwise. On disk, another program can change the file in the last moment. Replace returns
// the digest of the text.
func (d *Directory) Replace(ctx context.Context, path, text string, digest *string) (string, error) {
	if err := checkText(text); err != nil {
		return "", err
	}
	path, err := d.admit(d.resolveFile, "replace", path)
	if err != nil {
		return "", err
	}
	came, err := d.Remembers(ctx)
	if err == nil && !came {
		if err = d.replaceSmall(ctx, path, text, digest); errors.Is(err, errTwoSteps) {
			err = d.replaceLarge(ctx, path, text, digest)
		}
	}
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, _ = io.CopyBuffer(sum, struct{ io.Reader }{strings.NewReader(text)}, make([]byte, 4<<10)) // both never fail
	return blob.Digest(sum.Sum(nil)), nil
}

// errTwoSteps says that a file is too large to be looked at while other writers wait, or on disk.
var errTwoSteps = errors.New("the file is to be read before the transaction")

// replaceSmall is Replace in one transaction. The error can be errTwoSteps.
func (d *Directory) replaceSmall(ctx context.Context, path, text string, digest *string) error {
	if _, is := d.volume.(*stored); !is || len(text) > chunkSize {
		return errTwoSteps
	}
	return d.update(ctx, "replace", func(o *op) error {
		place, n, err := o.target(path)
		if err == nil && n != nil && n.status.Size > chunkSize {
			err = errTwoSteps
		}
		if err == nil {
			err = o.expect(path, place, n, digest)
		}
		if err == nil {
			err = abi.Charge(ctx, len(text))
		}
		if err != nil {
			return err
		}
		return o.put(place, n, int64(len(text)), strings.NewReader(text))
	})
}

// replaceLarge is Replace in two steps: it reads the file, and writes only if nobody has changed it meanwhile.
func (d *Directory) replaceLarge(ctx context.Context, path, text string, digest *string) error {
	var before *node
	err := d.view(ctx, "replace", func(o *op) (err error) {
		var place string
		if place, before, err = o.fileOrNone(path); err != nil {
			return err
		}
		return o.expect(path, place, before, digest)
	})
	if err != nil {
		return err
	}
	if err := abi.Charge(ctx, len(text)); err != nil {
		return err
	}
	content, drop, err := d.stage(ctx, "replace", path, int64(len(text)), strings.NewReader(text))
	if err != nil {
		return err
	}
	err = d.update(ctx, "replace", func(o *op) error {
		place, n, err := o.target(path)
		switch {
		case err != nil:
			return err
		case (n == nil) != (before == nil), n != nil && !n.holds(before):
			return changed(shown(path))
		}
		return o.put(place, n, int64(len(text)), content)
	})
	if err != nil {
		drop()
	}
	return err
}

// expect returns an error unless the content of a file has the digest. n is nil if there is no file.
func (o *op) expect(path, place string, n *node, digest *string) error {
	switch {
	case n == nil && digest == nil:
		return nil
	case n == nil:
		return abi.Errorf(abi.CodeConflict, "%s is gone", shown(path))
	case digest == nil:
		return abi.Errorf(abi.CodeConflict, "%s exists", shown(path))
	}
	if err := abi.Charge(o.ctx, int(n.status.Size)); err != nil {
		return err
	}
	sum := sha256.New()
	for piece, err := range o.content(place, n, 0) {
		if err != nil {
			return err
		}
		if err := o.ctx.Err(); err != nil { // on disk, a file can grow while it is read
			return err
		}
		sum.Write(piece)
	}
	if blob.Digest(sum.Sum(nil)) != *digest {
		return abi.Errorf(abi.CodeConflict, "%s has another content by now", shown(path))
	}
	return nil
}

// Append adds UTF-8 text of at most 16 MiB to the end of the file. It makes the file and its parent directories if they are missing.
// If more than 2 MiB are added and others keep changing the file, the error is [abi.ErrConflict].
func (d *Directory) Append(ctx context.Context, path, text string) error {
	if err := checkText(text); err != nil {
		return err
	}
	v, is := d.volume.(*stored)
	if !is || len(text) <= stagedAtOnce*chunkSize {
		return d.change(ctx, d.resolveFile, "append", path, func(o *op, path string) error { return o.append(path, []byte(text)) })
	}
	path, err := d.admit(d.resolveFile, "append", path)
	if err != nil {
		return err
	}
	if err := abi.Charge(ctx, len(text)); err != nil {
		return err
	}
	return unlessChanged("append", path, func() error { return d.appendLarge(ctx, v, path, text) })
}

// AppendBytes is Append for at most 262,144 bytes of any kind.
func (d *Directory) AppendBytes(ctx context.Context, path string, data []byte) error {
	if err := checkBytes(data); err != nil {
		return err
	}
	return d.change(ctx, d.resolveFile, "append", path, func(o *op, path string) error { return o.append(path, data) })
}

// inspect runs f on a resolved path.
func (d *Directory) inspect(
	ctx context.Context, resolve func(operation, path string) (string, error), operation, path string, f func(o *op, path string) error,
) error {
	path, err := resolve(operation, path)
	if err != nil {
		return err
	}
	return d.view(ctx, operation, func(o *op) error { return f(o, path) })
}

// change is inspect for an operation that changes something.
func (d *Directory) change(
	ctx context.Context, resolve func(operation, path string) (string, error), operation, path string, f func(o *op, path string) error,
) error {
	path, err := d.admit(resolve, operation, path)
	if err != nil {
		return err
	}
	return d.update(ctx, operation, func(o *op) error { return f(o, path) })
}

// admit resolves the path of an operation that changes something, and refuses it if this handle can only read.
func (d *Directory) admit(resolve func(operation, path string) (string, error), operation, path string) (string, error) {
	path, err := resolve(operation, path)
	if err != nil {
		return "", err
	}
	return path, d.writable(operation + " " + shown(path))
}

// write replaces or makes the file at a path, with its parent directories.
func (d *Directory) write(ctx context.Context, path string, size int64, content io.Reader) error {
	path, err := d.admit(d.resolveFile, "write", path)
	if err != nil {
		return err
	}
	if err := abi.Charge(ctx, int(size)); err != nil {
		return err
	}
	content, drop, err := d.stage(ctx, "write", path, size, content)
	if err != nil {
		return err
	}
	err = d.update(ctx, "write", func(o *op) error {
		place, n, err := o.target(path)
		if err != nil {
			return err
		}
		return o.put(place, n, size, content)
	})
	if err != nil {
		drop()
	}
	return err
}

func (o *op) append(path string, data []byte) error {
	if err := abi.Charge(o.ctx, len(data)); err != nil {
		return err
	}
	place, n, err := o.target(path)
	switch {
	case err != nil:
		return err
	case n == nil:
		return o.put(place, nil, int64(len(data)), bytes.NewReader(data))
	default:
		return o.extend(place, n, data)
	}
}

// target finds a file to write, or nil if it is new, and makes its parent directories.
func (o *op) target(path string) (place string, n *node, err error) {
	place, n, err = o.fileOrNone(path)
	if err == nil && n == nil {
		parent, _ := split(place)
		err = o.makeDirectories(parent)
	}
	return place, n, err
}

// fileOrNone finds a file, or the place for it.
func (o *op) fileOrNone(path string) (place string, n *node, err error) {
	place, n, err = o.locate(path, true)
	if err == nil && n != nil && !n.is(KindFile) {
		err = mismatch(path, n, "")
	}
	return place, n, err
}

// Limits of one operation, for people.
var (
	textLimit  = fmt.Sprintf("a text has at most %d; read the file in parts, or as a blob", abi.MaxText)
	bytesLimit = fmt.Sprintf("one operation takes and returns at most %d bytes, a blob more", abi.MaxBytes)
)

func checkText(text string) error {
	switch {
	case len(text) > abi.MaxText:
		return abi.TooLarge(uint64(len(text)), textLimit)
	case !utf8.ValidString(text):
		return abi.Errorf(abi.CodeInvalid, "the text is not UTF-8; write-bytes and append-bytes take any bytes")
	default:
		return nil
	}
}

func checkBytes(data []byte) error {
	if len(data) > abi.MaxBytes {
		return abi.TooLarge(uint64(len(data)), bytesLimit)
	}
	return nil
}
