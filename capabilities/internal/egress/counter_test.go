package egress

import "sync/atomic"

// counter counts the bytes written to it.
type counter struct{ n atomic.Int64 }

func (c *counter) add(n int) int64 { return c.n.Add(int64(n)) }

func (c *counter) get() int64 { return c.n.Load() }

func (c *counter) Write(p []byte) (int, error) {
	c.add(len(p))
	return len(p), nil
}

// zeros is an endless source of bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
