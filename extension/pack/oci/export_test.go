package oci

import (
	"context"
	"net"
)

// Dialling returns options that dial with a function.
func Dialling(o Options, dial func(ctx context.Context, network, address string) (net.Conn, error)) Options {
	o.dial = dial
	return o
}
