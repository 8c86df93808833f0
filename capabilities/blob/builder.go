package blob

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/stilehost/stile/abi"
)

// Options says how a [Builder] keeps what is written to it.
type Options struct {
	// MediaType of the blob. Default "application/octet-stream".
	MediaType string
	// Limit is the most bytes the blob may have. Default 16 MiB.
	Limit int64
	// Memory is how many bytes stay in memory; a blob with more is a temporary file. Default 1 MiB.
	Memory int64
	// Dir is where temporary files are made. Default os.TempDir.
	Dir string
	// Quota is charged for every byte until the blob is closed. Default none.
	Quota *Quota
}

// Builder makes a [Blob] from what is written to it. It is safe for concurrent use. Close it, whether or not Blob was
// called.
type Builder struct {
	options Options

	mu     sync.Mutex
	size   int64
	hash   hash.Hash
	memory bytes.Buffer
	file   *os.File // holds everything once it is there
	done   bool
}

// NewBuilder returns an empty builder.
func NewBuilder(o Options) *Builder {
	o.MediaType = cmp.Or(o.MediaType, "application/octet-stream")
	o.Limit = cmp.Or(o.Limit, 16<<20)
	o.Memory = cmp.Or(o.Memory, 1<<20)
	return &Builder{options: o, hash: sha256.New()}
}

// Write implements io.Writer. It writes all of p or nothing: abi.ErrTooLarge says that the limit would be passed,
// abi.ErrExhausted the quota, abi.ErrUnavailable that the disk failed.
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
	b.hash.Write(p)
	return len(p), nil
}

func (b *Builder) keep(p []byte) error {
	if b.file == nil && b.size+int64(len(p)) <= b.options.Memory {
		b.memory.Write(p)
		return nil
	}
	if b.file == nil {
		file, err := nameless(b.options.Dir)
		if err != nil {
			return fileError(err)
		}
		if _, err := file.Write(b.memory.Bytes()); err != nil {
			return errors.Join(fileError(err), file.Close())
		}
		b.file, b.memory = file, bytes.Buffer{}
	}
	_, err := b.file.WriteAt(p, b.size)
	return fileError(err)
}

// Bytes returns a copy of n bytes from offset on of what was written so far: fewer at its end, none beyond.
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
	if b.file == nil {
		return bytes.Clone(b.memory.Bytes()[offset:][:n]), nil
	}
	data := make([]byte, n)
	_, err := b.file.ReadAt(data, offset)
	return data, fileError(err)
}

// Blob ends the writing and returns what was written. The caller closes it.
func (b *Builder) Blob() (*Blob, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return nil, abi.Errorf(abi.CodeInvalid, "the writer is finished")
	}
	b.done = true
	made := &Blob{
		size: b.size, mediaType: b.options.MediaType, digest: digest(b.hash.Sum(nil)), file: b.file,
		release: func() { b.options.Quota.Release(b.size) },
	}
	if b.file != nil {
		made.content = b.file
	} else {
		made.content = bytes.NewReader(b.memory.Bytes())
	}
	return made, nil
}

// Close drops what was written, unless it became a blob. Closing again does nothing.
func (b *Builder) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return nil
	}
	b.done = true
	b.memory = bytes.Buffer{}
	b.options.Quota.Release(b.size)
	if b.file != nil {
		return fileError(b.file.Close())
	}
	return nil
}

// nameless makes a temporary file that goes away with its last descriptor.
func nameless(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, "stile-blob-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// fileError keeps names of the host's files out of what a guest is told.
func fileError(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return abi.Errorf(abi.CodeUnavailable, "temporary file: %v", path.Err)
	}
	return err
}

// Quota bounds the bytes that any number of builders and blobs hold together. It is safe for concurrent use; a nil *Quota
// has no bound.
type Quota struct {
	name  string
	limit int64

	mu   sync.Mutex
	used int64
}

// NewQuota returns a quota of limit bytes. The name says in errors whose it is, e.g. "blob store".
func NewQuota(name string, limit int64) *Quota { return &Quota{name: name, limit: limit} }

// Reserve takes n bytes, or fails with abi.ErrExhausted and takes none.
func (q *Quota) Reserve(n int64) error {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if n > q.limit-q.used {
		return abi.Errorf(abi.CodeExhausted, "%s: %d bytes", q.name, q.limit)
	}
	q.used += n
	return nil
}

// Release gives n bytes back.
func (q *Quota) Release(n int64) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used -= n
}

var (
	_ io.WriteCloser = (*Builder)(nil)
	_ io.ReaderAt    = (*Blob)(nil)
)
