package workspace

import (
	"io"
	"iter"
)

// contentReader reads the pieces of a file.
type contentReader struct {
	next func() ([]byte, error, bool)
	rest []byte
}

// pull iterates over the content of a file.
func pull(o *op, place string, n *node) (next func() ([]byte, error, bool), stop func()) {
	return iter.Pull2(o.content(place, n, 0))
}

// Read implements io.Reader.
func (r *contentReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		piece, err, ok := r.next()
		if !ok {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		r.rest = piece
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
