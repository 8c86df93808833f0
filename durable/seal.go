package durable

import (
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/crypto/chacha20poly1305"
)

// KeySize is the length of [Options.Key] in bytes.
const KeySize = chacha20poly1305.KeySize

// sealer compresses, encrypts and authenticates what the file keeps of runs. What is sealed says where it belongs: it cannot be opened as part of
// another run, or in another place of the same run.
type sealer struct {
	aead      cipher.AEAD
	addresses []byte // the key of tokens
}

func newSealer(key []byte) (*sealer, error) {
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, fmt.Errorf("the key of runs: %w", err)
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte("stile run addresses"))
	return &sealer{aead, h.Sum(nil)}, nil
}

// place is where something sealed belongs. after is the tag of what comes before it.
type place struct {
	run   string
	kind  string
	n     int64
	after []byte
}

func (p place) text() []byte {
	b := append([]byte("stile run\x00"+p.run+"\x00"+p.kind+"\x00"), make([]byte, 8)...)
	binary.LittleEndian.PutUint64(b[len(b)-8:], uint64(p.n))
	return append(b, p.after...)
}

var (
	packer = sync.OnceValue(func() *zstd.Encoder {
		e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
		return e
	})
	unpacker = sync.OnceValue(func() *zstd.Decoder {
		d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxSealed))
		return d
	})
)

const (
	// maxSealed bounds what is unpacked from one seal: a snapshot has at most the memory of a call and its handles.
	maxSealed = 160 << 20
	tagSize   = chacha20poly1305.Overhead
)

// seal returns the content as it is kept.
func (s *sealer) seal(at place, content []byte) []byte {
	sealed := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+len(content)/2+64)
	_, _ = rand.Read(sealed) // never fails
	return s.aead.Seal(sealed, sealed[:s.aead.NonceSize()], packer().EncodeAll(content, nil), at.text())
}

// errDamaged says that something was altered, or belongs elsewhere.
var errDamaged = errors.New("it is damaged or was altered, or the key is another")

func (s *sealer) open(at place, sealed []byte) ([]byte, error) {
	packed, err := s.decrypt(at, sealed)
	if err != nil {
		return nil, err
	}
	return unpack(packed)
}

// decrypt returns what is sealed, compressed.
func (s *sealer) decrypt(at place, sealed []byte) (packed []byte, err error) {
	if len(sealed) < s.aead.NonceSize()+tagSize {
		return nil, errDamaged
	}
	n := s.aead.NonceSize()
	if packed, err = s.aead.Open(nil, sealed[:n], sealed[n:], at.text()); err != nil {
		return nil, errDamaged
	}
	return packed, nil
}

func unpack(packed []byte) ([]byte, error) {
	content, err := unpacker().DecodeAll(packed, nil)
	if err != nil {
		return nil, errDamaged
	}
	return content, nil
}

// unpackedSize is how many bytes something that was sealed takes when it is unpacked. The packer leaves out sizes below 256.
func unpackedSize(packed []byte) int {
	var h zstd.Header
	switch err := h.Decode(packed); {
	case err != nil || h.FrameContentSize > maxSealed:
		return maxSealed
	case !h.HasFCS:
		return 256
	}
	return int(h.FrameContentSize)
}

// tag identifies what is sealed.
func tag(sealed []byte) []byte { return sealed[max(0, len(sealed)-tagSize):] }
