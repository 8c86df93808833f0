package blob

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"math"
	"sync"

	"github.com/stilehost/stile/abi"
)

// Options says where a [Builder] keeps its bytes, and how many it accepts.
type Options struct {
	// MediaType is the blob's media type. Default "application/octet-stream".
	MediaType string
	// Limit is the largest size of the blob, in bytes. Default 16 MiB.
	Limit int64
	// Memory is how many bytes stay in memory, as long as the blobs of this process have less than 64 MiB there together. The rest
	// is in a temporary file. Default 1 MiB.
	Memory int64
	// Dir is where temporary files are made. Default os.TempDir.
	Dir string
	// DigestLater computes the digest when it is asked for the first time, and not while the bytes are written. It is for blobs that are
	// read at once. The digest of one that was closed before it was asked is empty.
	DigestLater bool
	// Lasts has a durable call with the blob sleep, if the blob is small: see [Blob.Save]. The binding that the blob comes from restores it with [Restore].
	Lasts bool
	// Quota is charged for every byte until the blob is closed, and owns the temporary file. Default: a quota without a bound.
	Quota *Quota
}

// Builder makes a [Blob] from the bytes that are written to it. It is safe for concurrent use. Close it, whether or not Blob was
// called.
type Builder struct {
	options Options

	mu     sync.Mutex
	size   int64
	hash   hash.Hash
	memory []byte  // memory's quota is charged for its capacity
	spill  spilled // holds everything once it holds anything
	done   bool
}

// NewBuilder returns an empty builder.
func NewBuilder(o Options) *Builder {
	o.MediaType = cmp.Or(o.MediaType, "application/octet-stream")
	o.Limit = cmp.Or(o.Limit, 16<<20)
	o.Memory = cmp.Or(o.Memory, 1<<20)
	o.Quota = cmp.Or(o.Quota, NewQuota("", math.MaxInt64))
	return &Builder{options: o, hash: sha256.New(), spill: spilled{quota: o.Quota, dir: o.Dir}}
}

// Write implements io.Writer. It writes all of p or nothing. Errors are abi.ErrTooLarge above the limit, abi.ErrExhausted above the
// quota, and abi.ErrUnavailable if the disk failed.
func (b *Builder) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return 0, abi.Errorf(abi.CodeInvalid, "the writer is finished")
	}
	if int64(len(p)) > b.options.Limit-b.size {
		return 0, &abi.Error{Code: abi.CodeTooLarge, Size: uint64(b.options.Limit)}
	}
	if err := b.options.Quota.Reserve(int64(len(p))); err != nil {
		return 0, err
	}
	if err := b.keep(p); err != nil {
		b.options.Quota.Release(int64(len(p)))
		return 0, err
	}
	b.size += int64(len(p))
	if !b.options.DigestLater {
		b.hash.Write(p)
	}
	return len(p), nil
}

func (b *Builder) keep(p []byte) error {
	if b.spill.chunks == nil {
		if b.remember(p) {
			return nil
		}
		if err := b.spill.write(b.memory, 0); err != nil {
			return errors.Join(err, b.spill.close())
		}
		b.forget()
	}
	return b.spill.write(p, b.size)
}

// remember keeps p in memory, if there is room.
func (b *Builder) remember(p []byte) bool {
	size := b.size + int64(len(p))
	if size > b.options.Memory {
		return false
	}
	if size > int64(cap(b.memory)) {
		grown := max(size, min(2*int64(cap(b.memory)), b.options.Memory))
		if memory.Reserve(grown) != nil {
			return false
		}
		held := append(make([]byte, 0, grown), b.memory...)
		b.forget()
		b.memory = held
	}
	b.memory = append(b.memory, p...)
	return true
}

// forget frees the bytes in memory.
func (b *Builder) forget() {
	memory.Release(int64(cap(b.memory)))
	b.memory = nil
}

// Bytes returns a copy of n of the bytes written so far, starting at offset. It returns fewer at the end, and none beyond it.
func (b *Builder) Bytes(offset int64, n int) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return nil, abi.Errorf(abi.CodeInvalid, "the writer is finished")
	}
	if offset < 0 || offset >= b.size {
		return nil, nil
	}
	n = int(min(int64(n), b.size-offset))
	if b.spill.chunks == nil {
		return bytes.Clone(b.memory[offset:][:n]), nil
	}
	data := make([]byte, n)
	_, err := b.spill.ReadAt(data, offset)
	return data, fileError(err)
}

// DropBefore gives back what it can of the bytes before an offset: those in the temporary file, in pieces of 64 KiB. It returns how many
// of the first bytes are gone. To read them fails with abi.ErrInvalid, also in the blob that is made afterwards.
func (b *Builder) DropBefore(offset int64) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done || b.spill.chunks == nil {
		return 0, nil
	}
	before := b.spill.gone
	err := b.spill.dropBefore(min(offset, b.size))
	b.options.Quota.Release(int64(b.spill.gone-before) * chunkSize)
	return int64(b.spill.gone) * chunkSize, err
}

// Blob ends the writing and returns the written bytes as a blob. The caller closes it.
func (b *Builder) Blob() (*Blob, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return nil, abi.Errorf(abi.CodeInvalid, "the writer is finished")
	}
	b.done = true
	made := &Blob{size: b.size, mediaType: b.options.MediaType, lasts: b.options.Lasts}
	if !b.options.DigestLater {
		made.digest = Digest(b.hash.Sum(nil))
	}
	if b.spill.chunks != nil {
		made.content = io.NewSectionReader(&b.spill, 0, b.size)
	} else {
		made.content = bytes.NewReader(b.memory)
	}
	made.release = b.release
	return made, nil
}

// Close drops the written bytes, unless they became a blob. Closing again does nothing.
func (b *Builder) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return nil
	}
	b.done = true
	return b.release()
}

// release gives back everything. No more writes follow.
func (b *Builder) release() error {
	b.forget()
	b.options.Quota.Release(b.size - int64(b.spill.gone)*chunkSize)
	return b.spill.close()
}

var errDropped = abi.Errorf(abi.CodeInvalid, "these bytes were dropped")

// fileError keeps names of the host's files out of errors for guests.
func fileError(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return abi.Errorf(abi.CodeUnavailable, "temporary file: %v", path.Err)
	}
	return err
}

var (
	_ io.WriteCloser = (*Builder)(nil)
	_ io.ReaderAt    = (*Blob)(nil)
)
