package blob

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/stilehost/stile/abi"
)

// StoreOptions configures a [Store]. The zero value works.
type StoreOptions struct {
	// Limit is how many bytes the blobs and writers of one call may hold at a time. Default 64 MiB.
	Limit int64
	// Memory is how many bytes of one blob stay in memory. The rest is in a temporary file. Default 1 MiB.
	Memory int64
	// Dir is where temporary files are made. Default os.TempDir.
	Dir string
}

// Store makes blobs for a guest: the resource `store`. It is an abi.Opener, so each call has a whole limit of its own, which its
// bindings share. It is safe for concurrent use. It needs no closing, but its writers and blobs do.
type Store struct {
	options StoreOptions
	quota   *Quota
}

// NewStore returns a store.
func NewStore(o StoreOptions) *Store {
	o.Limit = cmp.Or(o.Limit, 64<<20)
	return &Store{options: o, quota: limit(o.Limit).quota()}
}

// limit is the limit of a store. Stores of a call with equal limits share one quota.
type limit int64

func (l limit) quota() *Quota { return NewQuota("blob store", int64(l)) }

// Interface implements abi.Capability.
func (s *Store) Interface() string { return Interface }

// Quick implements [abi.Quick].
func (*Store) Quick() []string { return []string{"get", "store.create", "store.finish"} }

// Open implements abi.Opener: it returns an empty *Store with the same options.
func (s *Store) Open(ctx context.Context) (any, error) {
	l := limit(s.options.Limit)
	return &Store{options: s.options, quota: abi.OfCall(ctx, l, l.quota)}, nil
}

// Create starts a blob. It fails with abi.ErrInvalid if the media type is longer than 255 bytes or has characters other than
// printable ASCII.
func (s *Store) Create(_ context.Context, mediaType string) (*Writer, error) {
	if !ValidMediaType(mediaType) {
		return nil, abi.Errorf(abi.CodeInvalid, "the media type is not at most %d printable ASCII characters", maxMediaType)
	}
	o := s.blobs()
	o.MediaType = mediaType
	return &Writer{store: s, builder: NewBuilder(o)}, nil
}

func (s *Store) blobs() Options {
	return Options{Limit: s.options.Limit, Memory: s.options.Memory, Dir: s.options.Dir, Quota: s.quota, Lasts: true}
}

// Restore implements [abi.Restorer].
func (s *Store) Restore(_ context.Context, resource string, state []byte) (any, error) {
	return Restore(resource, state, s.blobs())
}

// Finish makes a blob of the bytes that w received. It takes ownership
// of w even if it fails. It fails with abi.ErrInvalid if another store
// made w.
func (s *Store) Finish(_ context.Context, w *Writer) (*Blob, error) {
	defer func() { _ = w.Close() }() // drops bytes that did not become a blob
	if w.store != s {
		return nil, abi.Errorf(abi.CodeInvalid, "the writer belongs to another store")
	}
	return w.builder.Blob()
}

// Writer collects the bytes of one blob: the resource `writer`. Each append except AppendBlob writes all or nothing. It fails with
// abi.ErrTooLarge or abi.ErrExhausted above the store's limit. It is safe for concurrent use. Its holder closes it or passes it to
// [Store.Finish].
type Writer struct {
	store   *Store
	builder *Builder
}

// Quick implements [abi.Quick].
func (*Writer) Quick() []string {
	return []string{"writer.append", "writer.append-text", "writer.append-blob"}
}

// Lists implements [abi.Bounded].
func (*Writer) Lists() map[string]int {
	return map[string]int{"writer.append.bytes": abi.MaxBytes}
}

// Append adds at most [abi.MaxBytes] bytes.
func (w *Writer) Append(ctx context.Context, data []byte) error {
	if err := checkPiece(len(data)); err != nil {
		return err
	}
	return w.write(ctx, data)
}

// checkPiece refuses more bytes than a call passes.
func checkPiece(n int) error {
	if n > abi.MaxBytes {
		return abi.Errorf(abi.CodeInvalid, "%d bytes in one call: at most %d", n, abi.MaxBytes)
	}
	return nil
}

// AppendText adds text as UTF-8.
func (w *Writer) AppendText(ctx context.Context, text string) error {
	return w.write(ctx, []byte(text))
}

func (w *Writer) write(ctx context.Context, data []byte) error {
	if err := abi.Charge(ctx, len(data)); err != nil {
		return err
	}
	_, err := w.builder.Write(data)
	return err
}

// AppendBlob adds the content of source. It stops when ctx ends.
func (w *Writer) AppendBlob(ctx context.Context, source *Blob) error {
	if err := abi.Charge(ctx, int(source.size)); err != nil {
		return err
	}
	reader := source.Reader()
	for ctx.Err() == nil {
		if _, err := io.CopyN(w.builder, reader, abi.MaxBytes); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Close drops the written bytes, unless they became a blob.
func (w *Writer) Close() error { return w.builder.Close() }

const maxMediaType = 255

// ValidMediaType reports whether s can be a blob's media type: at most 255 bytes of printable ASCII.
func ValidMediaType(s string) bool {
	if len(s) > maxMediaType {
		return false
	}
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
