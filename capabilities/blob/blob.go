// Package blob keeps bytes on the host behind handles: it implements the interface stile:capability/blob in Go. A [Blob] never
// changes. Go code makes one with a [Builder], a guest with a [Store]. Small blobs stay in memory while all blobs of the process
// together are small. All other content is in a temporary file without a name, so even a killed process leaves nothing behind.
package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/wordtext"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/blob.wit.
const Interface = "stile:capability/blob@0.1.0"

// Blob is an immutable sequence of bytes with a media type: the resource `blob`. It is safe for concurrent use. Its holder closes
// it. After that, every read fails.
type Blob struct {
	size      int64
	mediaType string
	digest    string // "" for one that is computed when it is asked for
	once      sync.Once
	release   func() error
	lasts     bool

	mu      sync.RWMutex // only Close holds it for writing
	content io.ReaderAt  // nil once closed
}

// New makes a blob of data, which must not change afterwards.
func New(mediaType string, data []byte) *Blob {
	sum := sha256.Sum256(data)
	return &Blob{
		size: int64(len(data)), mediaType: mediaType, digest: Digest(sum[:]), release: func() error { return nil },
		content: bytes.NewReader(data),
	}
}

// Digest returns what [Blob.Digest] returns for content with this SHA-256.
func Digest(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

// Quick implements [abi.Quick].
func (*Blob) Quick() []string {
	return []string{"blob.size", "blob.media-type", "blob.digest", "blob.text", "blob.bytes", "blob.packed"}
}

// Lists implements [abi.Bounded].
func (*Blob) Lists() map[string]int {
	return map[string]int{"blob.bytes.result": abi.MaxBytes}
}

// Size returns the number of bytes.
func (b *Blob) Size(context.Context) uint64 { return uint64(b.size) }

// MediaType returns the media type the blob was made with, e.g. "application/json".
func (b *Blob) MediaType(context.Context) string { return b.mediaType }

// Digest returns "sha256:" and the digest of the bytes in hexadecimal.
func (b *Blob) Digest(context.Context) string {
	b.once.Do(func() {
		if b.digest != "" {
			return
		}
		hash := sha256.New()
		if _, err := io.Copy(hash, b.Reader()); err == nil {
			b.digest = Digest(hash.Sum(nil))
		}
	})
	return b.digest
}

var textLimit = fmt.Sprintf("a text has at most %d; read the content in parts", abi.MaxText)

// Text returns the whole content. It fails with abi.ErrTooLarge if the content has more than max bytes or more than [abi.MaxText], and
// with abi.ErrInvalid if it is not UTF-8.
func (b *Blob) Text(ctx context.Context, max uint64) (string, error) {
	if uint64(b.size) > min(max, abi.MaxText) {
		return "", abi.TooLarge(uint64(b.size), textLimit)
	}
	if err := abi.Room(ctx, b.size); err != nil {
		return "", err
	}
	var text strings.Builder
	text.Grow(int(b.size))
	if _, err := io.Copy(&text, b.Reader()); err != nil {
		return "", err
	}
	if !utf8.ValidString(text.String()) {
		return "", abi.Errorf(abi.CodeInvalid, "the content is not UTF-8 text")
	}
	return text.String(), nil
}

// Bytes returns n bytes starting at offset, fewer at the end and none beyond it. It fails with abi.ErrInvalid if n is more than
// [abi.MaxBytes].
func (b *Blob) Bytes(_ context.Context, offset uint64, n uint32) ([]byte, error) {
	if err := checkPiece(int(n)); err != nil {
		return nil, err
	}
	if offset >= uint64(b.size) {
		return []byte{}, nil
	}
	data := make([]byte, min(uint64(n), uint64(b.size)-offset))
	if read, err := b.ReadAt(data, int64(offset)); read < len(data) {
		return nil, err
	}
	return data, nil
}

// Packed returns what [Blob.Bytes] returns, as a text that a component gets much faster: the number of bytes as u64, the bytes, and zeros
// up to a whole word of 8 bytes, encoded by package wordtext.
func (b *Blob) Packed(ctx context.Context, offset uint64, n uint32) (string, error) {
	data, err := b.Bytes(ctx, offset, n)
	if err != nil {
		return "", err
	}
	return wordtext.Pack(data), nil
}

// ReadAt implements io.ReaderAt.
func (b *Blob) ReadAt(p []byte, offset int64) (int, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.content == nil {
		return 0, abi.Errorf(abi.CodeInvalid, "the blob is closed")
	}
	n, err := b.content.ReadAt(p, offset)
	return n, fileError(err)
}

// Reader returns a new reader of the content from its start. It reads until the blob is closed.
func (b *Blob) Reader() *io.SectionReader { return io.NewSectionReader(b, 0, b.size) }

// Close frees the content. It waits for reads in progress. Closing again does nothing.
func (b *Blob) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.content == nil {
		return nil
	}
	b.content = nil
	return b.release()
}
