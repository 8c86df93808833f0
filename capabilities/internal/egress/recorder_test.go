package egress

import (
	"io"
	"net"
	"time"
)

// recorder is a connection that records what is written, and has nothing to read.
type recorder struct {
	net.Conn
	bytes []byte
}

func (r *recorder) Read([]byte) (int, error) { return 0, io.EOF }

func (r *recorder) Write(p []byte) (int, error) {
	r.bytes = append(r.bytes, p...)
	return len(p), nil
}

func (*recorder) SetDeadline(time.Time) error      { return nil }
func (*recorder) SetReadDeadline(time.Time) error  { return nil }
func (*recorder) SetWriteDeadline(time.Time) error { return nil }
func (*recorder) Close() error                     { return nil }
