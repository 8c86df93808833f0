package blob

import (
	"encoding/binary"
	"errors"

	"github.com/stilehost/stile/abi"
)

// Save implements [abi.Lasting]: it returns the media type and the bytes. It reports false if these are more than [abi.MaxSaved], or if the blob was made without
// [Options.Lasts].
func (b *Blob) Save() (state []byte, ok bool) {
	state = append(binary.AppendUvarint(nil, uint64(len(b.mediaType))), b.mediaType...)
	head := len(state)
	if !b.lasts || b.size > int64(abi.MaxSaved-head) {
		return nil, false
	}
	state = append(state, make([]byte, b.size)...)
	if n, _ := b.ReadAt(state[head:], 0); n < int(b.size) {
		return nil, false
	}
	return state, true
}

// Restore makes a blob of what [Blob.Save] returned. It does so for a binding, in its Restore of [abi.Restorer]. The bytes count toward the quota among the options.
func Restore(resource string, state []byte, o Options) (*Blob, error) {
	length, n := binary.Uvarint(state)
	if resource != "blob" || n <= 0 || length > uint64(min(len(state)-n, maxMediaType)) {
		return nil, errors.New("restore a blob: its state is malformed")
	}
	o.MediaType, o.Lasts = string(state[n:][:length]), true
	if !ValidMediaType(o.MediaType) {
		return nil, errors.New("restore a blob: its media type is malformed")
	}
	data := state[n+int(length):]
	o.Limit = max(1, int64(len(data)))
	b := NewBuilder(o)
	defer func() { _ = b.Close() }() // drops bytes that did not become a blob
	if _, err := b.Write(data); err != nil {
		return nil, err
	}
	return b.Blob()
}

// Repeat implements [abi.Repeatable]: a blob never changes.
func (*Blob) Repeat(string, []abi.Value) abi.Repeat { return abi.Reads }
