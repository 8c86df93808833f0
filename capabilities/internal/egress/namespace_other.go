//go:build !linux

package egress

import (
	"net"
	"os/exec"

	"github.com/stilehost/stile/abi"
)

// Namespace is a network namespace, which only Linux has.
type Namespace struct{}

var errNoNamespace = abi.Errorf(abi.CodeUnavailable, "network namespaces exist only on Linux")

// NewNamespace fails.
func NewNamespace() (*Namespace, error) { return nil, errNoNamespace }

// OpenNamespace fails.
func OpenNamespace(string) (*Namespace, error) { return nil, errNoNamespace }

// Path is empty.
func (*Namespace) Path() string { return "" }

// Do fails.
func (*Namespace) Do(func() error) error { return errNoNamespace }

// Listen fails.
func (*Namespace) Listen() (net.Listener, error) { return nil, errNoNamespace }

// Start fails.
func (*Namespace) Start(*exec.Cmd) error { return errNoNamespace }

// Close does nothing.
func (*Namespace) Close() error { return nil }
