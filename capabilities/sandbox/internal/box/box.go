// Package box runs commands in a container: new namespaces, always with a user namespace, no capabilities, a list of allowed system
// calls, a root that cannot be written, and one file system of a limited size for everything that can. A [Box] is one container. When
// the process that made it dies, however it dies, the container's first process ends, and with it all others, its mounts and its disk.
// [Sweep] removes what then remains: empty cgroups and a folder.
package box

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Runtimes are what can make a container.
var Runtimes = []string{"crun", "runc", "podman", "docker"}

// Options says how boxes are made on this machine. The zero value of a field means its default.
type Options struct {
	// Dir is a folder for what boxes need while they run. It must be this user's own.
	Dir string
	// Runtime is one of [Runtimes], or the path of one of them. Default: the first that is installed.
	Runtime string
	// Storage says where the files of a box are: "memory", or "disk", a file of the box's size. Default: disk where the machine can.
	Storage string
	// Cgroup is the parent of the boxes' cgroups, from the root of each hierarchy. Default "stile".
	Cgroup string
	// WithoutUserNamespace lets boxes run as the user of this process where the machine has no user namespaces. Default: refused.
	WithoutUserNamespace bool
}

// Root is what a box sees at "/".
type Root struct {
	// Dir is a folder with a root file system. It is empty for the programs of this machine: its /usr and what belongs to it.
	Dir string
	// Paths are more folders of this machine, to be seen at the same places. Only for programs of this machine.
	Paths []string
	// Env are more variables, NAME=VALUE.
	Env []string
	// Authority is the certificate of an authority that programs trust besides those of the root, in PEM. It is empty for none.
	Authority []byte
}

// Limits bound a box. All are required.
type Limits struct {
	Memory    int64 // bytes
	Disk      int64 // bytes of all files together
	Files     int64 // inodes
	Processes int64
	CPU       float64 // processors
}

// Process is a command.
type Process struct {
	Args  []string
	Env   []string // beside those of the root
	Dir   string   // absolute; default /work
	Stdin io.Reader
	// Output gets what the process writes, in parts, from one goroutine at a time.
	Output func(stream Stream, part []byte)
}

// Stream is where output was written.
type Stream uint8

// The streams.
const (
	Stdout Stream = iota
	Stderr
)

// Exit is how a process ended.
type Exit struct {
	Code   int // 128 plus the number of the signal that ended it
	Killed bool
	// Memory is set if processes of the box were ended meanwhile because they took too much memory.
	Memory bool
}

// Check is one thing that was looked at, on this machine or in a running box.
type Check struct {
	Name string
	// OK reports whether it holds, and Detail says what was found.
	OK     bool
	Detail string
}

// Work is where the working tree is in a box, and Home what HOME names.
const (
	Work = "/work"
	Home = "/home"
)

// Authorities is the file with the certificates of all authorities that a box trusts, if its root names one more. The lists of a root's own
// show it too.
const Authorities = "/dev/authorities.pem"

// closing is how long the parts of a box have to end by themselves.
const closing = 5 * time.Second

// ErrUnavailable reports that this machine cannot run a box.
var ErrUnavailable = errors.New("sandboxes are not available on this machine")

// StartError is the error of a command that could not be started: there is no such program, or it is no program.
type StartError struct{ Program, Problem string }

// Error implements error.
func (e *StartError) Error() string { return fmt.Sprintf("start %s: %s", e.Program, e.Problem) }
