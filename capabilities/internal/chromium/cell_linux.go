package chromium

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// cell is where a browser runs: a thread of this process in namespaces of its own, which the browser inherits. Its network has only a
// loopback interface, and its file system only what the browser needs and a small disk in memory. Both are gone when the thread and the
// browser are. A cell that is not confined is a temporary folder.
type cell struct {
	// dir is the folder that the browser may write, as it names it.
	dir string
	// work are functions that the thread runs. It is nil if the cell is not confined.
	work   chan func()
	closed chan struct{}
}

// nobody is the user that owns nothing.
const nobody = 65534

// LackError says why a browser cannot be confined here.
type LackError struct{ Reason string }

// Error implements error.
func (e *LackError) Error() string { return "Chromium cannot be confined here: " + e.Reason }

func newCell(o Options) (*cell, error) {
	if !o.Unconfined {
		c := &cell{dir: profile, work: make(chan func()), closed: make(chan struct{})}
		ready := make(chan error)
		go c.thread(o, ready)
		if err := <-ready; err != nil {
			return nil, err
		}
		return c, nil
	}
	dir, err := os.MkdirTemp("", "stile-browser-")
	if err == nil && os.Geteuid() == 0 {
		err = os.Chown(dir, nobody, nobody)
	}
	if err != nil {
		return nil, err
	}
	return &cell{dir: dir}, nil
}

// thread runs the functions of c on a thread that never runs anything else, and ends with it. The system ends the browser with the thread
// that started it.
func (c *cell) thread(o Options, ready chan<- error) {
	runtime.LockOSThread() // for good: the goroutine ends with the thread
	if err := enter(o); err != nil {
		ready <- err
		return
	}
	ready <- nil
	for {
		select {
		case f := <-c.work:
			f()
		case <-c.closed:
			return
		}
	}
}

// do runs f on the thread of c.
func (c *cell) do(f func() error) error {
	if c.work == nil {
		return f()
	}
	done := make(chan error, 1)
	select {
	case c.work <- func() { done <- f() }:
		return <-done
	case <-c.closed:
		return ErrGone
	}
}

// enter moves this thread into new namespaces.
func enter(o Options) error {
	if os.Geteuid() != 0 {
		return &LackError{"only root, of this machine or of a user namespace, can make the namespaces"}
	}
	network, err := os.Open(o.Network)
	if err != nil {
		return &LackError{fmt.Sprintf("its network: %v", err)}
	}
	defer network.Close()
	if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
		return &LackError{fmt.Sprintf("its network: %v", err)}
	}
	const spaces = unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if err := unix.Unshare(spaces); err != nil {
		return &LackError{fmt.Sprintf("the system refuses new namespaces: %v", err)}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return &LackError{fmt.Sprintf("no_new_privs: %v", err)}
	}
	if err := newRoot(o); err != nil {
		return &LackError{fmt.Sprintf("the file system: %v", err)}
	}
	return nil
}

// shared are what a browser reads of this machine.
var shared = []string{
	"/usr", "/lib", "/lib64", "/bin", "/etc/fonts", "/etc/ld.so.cache", "/var/cache/fontconfig",
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
}

// newRoot makes a file system in memory the root of this thread.
func newRoot(o Options) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	root := "/tmp" // it only has to exist: nobody else sees what is mounted there
	if err := unix.Mount("stile", root, "tmpfs", unix.MS_NOSUID, fmt.Sprintf("size=%d,nr_inodes=50000,mode=0755", o.Disk)); err != nil {
		return fmt.Errorf("a disk: %w", err)
	}
	sources := shared
	if program, err := filepath.EvalSymlinks(o.Path); err == nil && !strings.HasPrefix(program, "/usr/") {
		sources = append([]string{filepath.Dir(o.Path)}, sources...)
	}
	for _, source := range sources {
		if err := share(source, root+source); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
	}
	for _, dir := range []string{"/proc", "/old", "/dev/shm", "/tmp", profile} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			return err
		}
	}
	// Of all processes, the browser sees its own.
	if err := unix.Mount("proc", root+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "hidepid=2"); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	user := fmt.Sprintf("nobody:x:%d:%d::%s:/usr/sbin/nologin\n", nobody, nobody, profile)
	if err := os.WriteFile(root+"/etc/passwd", []byte(user), 0o444); err != nil {
		return err
	}
	if err := os.Chown(root+profile, nobody, nobody); err != nil {
		return err
	}
	if err := unix.PivotRoot(root, root+"/old"); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	return unix.Unmount("/old", unix.MNT_DETACH)
}

// share shows a file or folder of this machine at another path, to read. One that does not exist is left out.
func share(source, at string) error {
	info, err := os.Lstat(source)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0: // such as /lib
		to, err := os.Readlink(source)
		if err != nil {
			return err
		}
		return os.Symlink(to, at)
	case info.IsDir():
		err = os.Mkdir(at, 0o755)
	default:
		err = os.WriteFile(at, nil, 0o444)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(source, at, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	options := uintptr(unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY | unix.MS_NOSUID)
	if strings.HasPrefix(source, "/dev/") {
		options &^= unix.MS_RDONLY
	} else {
		options |= unix.MS_NODEV
	}
	return unix.Mount("", at, "", options, "")
}

// start starts cmd in the cell.
func (c *cell) start(cmd *exec.Cmd, o Options) error {
	at := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		at.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	cmd.SysProcAttr = at
	if c.work == nil {
		return c.startUnconfined(cmd, o)
	}
	at.Cloneflags = syscall.CLONE_NEWPID // the system ends all processes of the browser with its first
	return c.do(func() error { return begin(cmd, o) })
}

// startUnconfined keeps the thread that starts cmd until cmd has ended: the system ends cmd with it.
func (c *cell) startUnconfined(cmd *exec.Cmd, o Options) error {
	started := make(chan error)
	c.closed = make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := begin(cmd, o)
		started <- err
		if err == nil {
			<-c.closed
		}
	}()
	return <-started
}

func begin(cmd *exec.Cmd, o Options) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	// It has started none of its own yet; they inherit these. Where it has ended already, the reader of its pipe says so.
	for _, l := range []struct {
		resource int
		most     uint64
	}{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_FSIZE, uint64(o.Disk)}, {unix.RLIMIT_NOFILE, 8192}} {
		_ = unix.Prlimit(cmd.Process.Pid, l.resource, &unix.Rlimit{Cur: l.most, Max: l.most}, nil)
	}
	return nil
}

// kill ends the process and all that it started.
func (c *cell) kill(p *os.Process) {
	if c.work == nil {
		_ = unix.Kill(-p.Pid, unix.SIGKILL) // the session that it began
	}
	_ = p.Kill()
}

// close gives up the cell, once the browser has ended.
func (c *cell) close() error {
	if c.closed != nil {
		close(c.closed)
	}
	if c.work == nil {
		return os.RemoveAll(c.dir)
	}
	return nil
}

func (c *cell) open(path string) (f *os.File, err error) {
	err = c.do(func() error {
		// Without O_NONBLOCK, a pipe would keep it waiting.
		f, err = os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("not a file")
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (c *cell) removeAll(path string) error { return c.do(func() error { return os.RemoveAll(path) }) }
