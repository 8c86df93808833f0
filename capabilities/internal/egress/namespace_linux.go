package egress

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/stilehost/stile/abi"
)

// Namespace is a network namespace of Linux. It exists as long as it is open, or a process or listener is in it. It is safe for concurrent
// use until Close.
type Namespace struct{ file *os.File }

// NewNamespace makes a network namespace that has only a loopback interface, which is up. It needs root of the machine or of a user namespace, or CAP_SYS_ADMIN; without, the
// error is abi.ErrUnavailable.
func NewNamespace() (*Namespace, error) {
	var n *Namespace
	enter := func() error { return unix.Unshare(unix.CLONE_NEWNET) }
	err := visit(enter, func() error {
		if err := loopbackUp(); err != nil {
			return err
		}
		file, err := os.Open(ownNamespace)
		if err != nil {
			return abi.Errorf(abi.CodeUnavailable, "keep a network namespace: %v", err)
		}
		n = &Namespace{file}
		return nil
	})
	return n, err
}

// OpenNamespace opens the network namespace of a file such as /proc/PID/ns/net, for a program that makes namespaces itself. It leaves the
// interfaces as they are: Listen needs a loopback interface that is up.
func OpenNamespace(path string) (*Namespace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, abi.Errorf(abi.CodeUnavailable, "open a network namespace: %v", err)
	}
	kind, err := unix.IoctlRetInt(int(file.Fd()), unix.NS_GET_NSTYPE)
	if err == nil && kind != unix.CLONE_NEWNET {
		err = errors.New("it is a namespace of another kind")
	}
	if err != nil {
		_ = file.Close() // it was not changed
		return nil, abi.Errorf(abi.CodeUnavailable, "open the network namespace %s: %v", path, err)
	}
	return &Namespace{file}, nil
}

// unshare makes its user root of a user namespace, which has nobody too, and processes of its own.
const unshare = "unshare --map-root-user --map-auto --pid --fork --kill-child --mount-proc"

// ownNamespace is the network namespace of the thread that opens it.
const ownNamespace = "/proc/thread-self/ns/net"

// visit runs f on a thread that has entered another namespace.
func visit(enter, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread is what /proc/self shows, and it cannot end. While it is locked here, another one is used.
			defer runtime.UnlockOSThread()
			done <- visit(enter, f)
			return
		}
		done <- visitLocked(enter, f)
	}()
	return <-done
}

// visitLocked brings the thread back and unlocks it, because a process with Pdeathsig ends with the thread that started it. A thread that
// cannot come back stays locked, and ends with its goroutine: root of a user namespace may leave the machine's network, and not return to it.
func visitLocked(enter, f func() error) error {
	home, err := os.Open(ownNamespace)
	if err != nil {
		return abi.Errorf(abi.CodeUnavailable, "find the network namespace of a thread: %v", err)
	}
	defer home.Close()
	if err := enter(); err != nil {
		runtime.UnlockOSThread() // nothing has changed
		return abi.Errorf(abi.CodeUnavailable, "enter a network namespace: %v; it needs root of this machine, or of a user namespace: %s stile ...", err, unshare)
	}
	result := f()
	if err := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); err == nil {
		runtime.UnlockOSThread()
	}
	return result
}

func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return abi.Errorf(abi.CodeUnavailable, "open a socket in a network namespace: %v", err)
	}
	defer func() { _ = unix.Close(socket) }()
	request, err := unix.NewIfreq("lo")
	if err == nil {
		err = unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, request)
	}
	if err == nil {
		request.SetUint16(request.Uint16() | unix.IFF_UP)
		err = unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
	}
	if err != nil {
		return abi.Errorf(abi.CodeUnavailable, "start the loopback interface of a network namespace: %v", err)
	}
	return nil
}

// Path names the namespace for other programs, such as a container runtime, while it is open and this process runs.
func (n *Namespace) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), n.file.Fd()) }

// Do runs f in the namespace: sockets that f opens and processes that f starts belong to it, but not what goroutines of f do. f must return.
// Errors: those of f, and abi.ErrUnavailable if the namespace cannot be entered.
func (n *Namespace) Do(f func() error) error {
	return visit(func() error { return unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET) }, f)
}

// Listen listens on a free port of the namespace's 127.0.0.1. The listener is served from outside. Its Addr is as seen inside.
func (n *Namespace) Listen() (net.Listener, error) {
	var l net.Listener
	err := n.Do(func() (err error) {
		l, err = net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // listening does not wait
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("egress: listen in a network namespace: %w", err)
	}
	return elsewhere{l}, nil
}

// Start starts a command in the namespace. The caller waits for the command as usual.
func (n *Namespace) Start(command *exec.Cmd) error { return n.Do(command.Start) }

// Close lets go of the namespace. It goes on while processes or listeners are in it.
func (n *Namespace) Close() error { return n.file.Close() }
