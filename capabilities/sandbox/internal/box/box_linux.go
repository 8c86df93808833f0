package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	firstID = 1 << 30 // of the first box: the user id of root in it
	// maxBoxes is how many boxes of one folder can run at once, in all processes.
	maxBoxes = 256
)

// runDir is where the thread of a box has a file system in memory for what the runtime needs while it runs. Every user may enter it, as
// the runtime does in the box's user namespace, and nothing of it is left once the box has ended. The machine's own folder of this name
// is not touched.
const runDir = "/run"

// What is in it.
const (
	initFile = runDir + "/init"  // the program of the first process
	filesDir = runDir + "/files" // the file system of the box
	rootDir  = runDir + "/root"
)

// Box is a running container. It is safe for concurrent use. Its maker closes it.
type Box struct {
	root     Root
	dir      string   // of this box, in Options.Dir
	run      *os.Root // what the runtime needs: see runDir
	id       string
	parent   string // of all that belongs to the box: its path in each hierarchy
	cgroup   string // of the container: the parent, or below it
	cgroups  cgroups
	runtime  ociRuntime
	pid      int // of the first process
	thread   *thread
	lock     *os.File
	work     *os.File      // the working tree
	follower *follower     // of its file system; nil where the kernel has none
	stdin    *os.File      // the first process ends when this is closed
	keeper   *os.Process   // the runtime, which stays as long as the container
	starting sync.RWMutex  // read while an engine starts a process, which it cannot while all stand still
	ended    chan struct{} // closed when the container has ended
	first    uint32        // the user id of root in it
	storage  string
	verified []Check

	mu     sync.Mutex
	number int // of the last command
	closed bool
	open   sync.WaitGroup // commands
}

// Start makes a box. It takes as long as a container takes to start. ctx bounds the start only.
func Start(ctx context.Context, o Options, r Root, l Limits) (_ *Box, err error) {
	b := &Box{root: r, cgroups: findCgroups(), ended: make(chan struct{})}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: stile does not run as root: %s; and only root mounts a disk of a limited size, and gives each sandbox users of its own", ErrUnavailable, b.cgroups.ofUser())
	}
	if !o.WithoutUserNamespace && !mapped(firstID, maxBoxes*rangeSize) {
		return nil, fmt.Errorf("%w: stile is root of a user namespace, and not of the machine: %s; and the namespace has no users for sandboxes", ErrUnavailable, b.cgroups.ofUser())
	}
	for _, c := range []string{"memory", "pids", "freezer"} {
		if !b.cgroups.has(c) {
			return nil, fmt.Errorf("%w: the cgroup controller %s is missing from %s", ErrUnavailable, c, b.cgroups)
		}
	}
	if b.thread, err = newThread(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if err := b.reserve(o); err != nil {
		return nil, err
	}
	if b.runtime, err = findRuntime(o.Runtime); err != nil {
		return nil, err
	}
	if err := b.prepare(ctx, o, l); err != nil {
		return nil, err
	}
	if err := b.start(ctx, l); err != nil {
		return nil, err
	}
	if err := b.runtime.furnish(b); err != nil {
		return nil, err
	}
	return b, b.check(o, l)
}

// reserve takes a free number, and with it a folder and a range of user ids that no other box has.
func (b *Box) reserve(o Options) error {
	parent := o.Cgroup
	if parent == "" {
		parent = "stile"
	}
	var errs []error
	for slot := range maxBoxes {
		dir := filepath.Join(o.Dir, strconv.Itoa(slot))
		lock, err := acquire(dir)
		if err != nil {
			return err
		}
		if lock == nil {
			continue
		}
		b.dir, b.lock = dir, lock
		b.id = name(dir)
		b.parent = filepath.Join("/", parent, b.id)
		b.cgroup = b.parent
		b.first = firstID + uint32(slot)*rangeSize
		if err := os.WriteFile(filepath.Join(dir, "cgroup"), []byte(b.parent), 0o600); err != nil {
			return err
		}
		if err := clean(dir, b.cgroups, b.parent); err != nil { // of a box whose process died, and whose engine does not answer
			errs = append(errs, err, lock.Close())
			b.lock = nil
			continue
		}
		return nil
	}
	return errors.Join(append(errs, fmt.Errorf("%d sandboxes run already", maxBoxes))...)
}

// prepare makes the file systems and writes the configuration.
func (b *Box) prepare(ctx context.Context, o Options, l Limits) error {
	if !userNamespaces() {
		if !o.WithoutUserNamespace {
			return fmt.Errorf("%w: there are no user namespaces", ErrUnavailable)
		}
		b.first = 0
	}
	program, err := initProgram()
	if err != nil {
		return err
	}
	var programs []string
	var trusted []mount
	err = b.thread.run(func() error {
		if !b.cgroups.unified {
			// crun refuses to work where a version 2 hierarchy is mounted beside version 1.
			_ = unix.Unmount(filepath.Join(cgroupRoot, "unified"), unix.MNT_DETACH)
		}
		if err := unix.Mount("tmpfs", runDir, "tmpfs", unix.MS_NODEV, "size=16m,mode=711"); err != nil {
			return err
		}
		for _, d := range []string{filesDir, rootDir} {
			if err := os.Mkdir(d, 0o711); err != nil {
				return err
			}
		}
		if err := writeProgram(initFile, program, 0o555); err != nil {
			return err
		}
		if b.run, err = os.OpenRoot(runDir); err != nil {
			return err
		}
		if b.storage, err = mountFiles(ctx, o.Storage, b.dir, filesDir, l); err != nil {
			return fmt.Errorf("make the file system: %w", err)
		}
		_ = os.Remove(filepath.Join(filesDir, "lost+found"))
		for _, p := range places {
			if err := os.Mkdir(filepath.Join(filesDir, p.source), 0o755); err != nil {
				return err
			}
		}
		for _, shared := range []string{"tmp", "vartmp"} {
			if err := os.Chmod(filepath.Join(filesDir, shared), os.ModeSticky|0o777); err != nil {
				return err
			}
		}
		if programs, err = b.root.mount(rootDir); err != nil {
			return fmt.Errorf("make the root: %w", err)
		}
		if trusted, err = b.root.trust(rootDir, runDir+"/authorities", programs); err != nil {
			return fmt.Errorf("make the list of authorities: %w", err)
		}
		b.work, err = os.Open(filepath.Join(filesDir, "work"))
		return err
	})
	if err != nil {
		return err
	}
	if err := b.thread.run(func() error { b.follower = follow(b.work); return nil }); err != nil {
		return err
	}
	return b.runtime.prepare(ctx, b, o, l, programs, trusted)
}

// own gives the folders that a box can write to its root. It runs on the thread.
func (b *Box) own() error {
	var errs []error
	for _, p := range places {
		errs = append(errs, os.Chown(filepath.Join(filesDir, p.source), int(b.first), int(b.first)))
	}
	return errors.Join(errs...)
}

// start runs the first process and waits until it says that it runs.
func (b *Box) start(ctx context.Context, l Limits) error {
	in, stdin, err := os.Pipe()
	if err != nil {
		return err
	}
	ready, out, err := os.Pipe()
	if err != nil {
		return errors.Join(err, in.Close(), stdin.Close())
	}
	defer ready.Close()
	log, err := b.run.Create("said")
	if err != nil {
		return errors.Join(err, in.Close(), out.Close(), stdin.Close())
	}
	cmd := b.runtime.run(b, l)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, log
	err = b.runtime.begin(b, cmd)
	err = errors.Join(err, in.Close(), out.Close(), log.Close())
	if err != nil {
		return errors.Join(err, stdin.Close())
	}
	b.stdin, b.keeper = stdin, cmd.Process
	go func() {
		defer close(b.ended)
		_ = cmd.Wait()
	}()
	stop := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		<-b.ended
		message := said(b.run, "log")
		if text, _ := b.run.ReadFile("said"); message == "" {
			message = string(text)
		}
		return fmt.Errorf("%w: the container runtime: %.500s", ErrUnavailable, message)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if b.pid, err = b.runtime.started(ctx, b); err != nil || b.pid > 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-b.ended:
			return fmt.Errorf("%w: the container ended at once", ErrUnavailable)
		}
	}
}

// check reads back what was asked for.
func (b *Box) check(o Options, l Limits) error {
	if b.first == 0 && !o.WithoutUserNamespace {
		return fmt.Errorf("%w: the container is in no user namespace", ErrUnavailable)
	}
	if err := confined(b.pid, b.first != 0); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	b.verified = b.cgroups.verify(b.cgroup, l)
	var s unix.Statfs_t
	err := unix.Fstatfs(int(b.work.Fd()), &s)
	size := int64(s.Blocks) * s.Bsize
	b.verified = append(b.verified, Check{"disk", err == nil && size <= l.Disk, fmt.Sprintf("%d in %s", size, b.storage)})
	var errs []error
	for _, c := range b.verified {
		if !c.OK && c.Name != "cpu" && c.Name != "swap" {
			errs = append(errs, fmt.Errorf("%w: the limit of %s does not hold: %s", ErrUnavailable, c.Name, c.Detail))
		}
	}
	return errors.Join(errs...)
}

// Verified says which limits could be read back after the start.
func (b *Box) Verified() []Check { return slices.Clone(b.verified) }

// Runtime is the program that runs the box, whether it is in a user namespace, and the version of cgroups by which it is limited.
func (b *Box) Runtime() string {
	namespace := "in a user namespace"
	if b.first == 0 {
		namespace = "without a user namespace"
	}
	return fmt.Sprintf("%s, %s, with %s", b.runtime.name(), namespace, b.cgroups)
}

// Network names the network namespace of the box. It has a loopback interface and nothing else. What a program outside listens on in it is
// all that the box can reach.
func (b *Box) Network() (string, error) {
	return fmt.Sprintf("/proc/%d/ns/net", b.pid), nil
}

// Work is the working tree, as the machine sees it, and Owner the user id of its files' owner.
func (b *Box) Work() *os.File { return b.work }

// Owner is the user and group id, on the machine, of root in the box.
func (b *Box) Owner() int { return int(b.first) }

// Ended is closed when the container has ended.
func (b *Box) Ended() <-chan struct{} { return b.ended }

// Freeze stops all processes, until Thaw, which must follow.
func (b *Box) Freeze() error {
	b.starting.Lock()
	err := b.cgroups.freeze(b.cgroup)
	if err != nil {
		err = errors.Join(err, ignoreMissing(b.cgroups.thaw(b.cgroup)))
		b.starting.Unlock()
	}
	return err
}

// Thaw lets them continue.
func (b *Box) Thaw() error {
	defer b.starting.Unlock()
	return b.cgroups.thaw(b.cgroup)
}

// Run runs a process until it ends. If ctx ends first, the process is killed. What it started ends with it, in whatever session that is.
func (b *Box) Run(ctx context.Context, p Process) (Exit, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return Exit{}, errors.New("the sandbox is closed")
	}
	b.number++
	below := "c" + strconv.Itoa(b.number)
	b.open.Add(1)
	b.mu.Unlock()
	defer b.open.Done()

	if p.Dir == "" {
		p.Dir = Work
	}
	cgroup := filepath.Join(b.cgroup, below)
	if err := b.cgroups.add(cgroup); err != nil {
		return Exit{}, err
	}
	killsBefore := b.cgroups.memoryKills(b.cgroup)
	c, err := b.runtime.exec(b, below, p)
	if err != nil {
		return Exit{}, errors.Join(err, b.vacate(cgroup))
	}
	defer c.done()
	c.kill = func() error { return b.cgroups.kill(cgroup) }
	err = c.run(ctx, b)
	kills := b.cgroups.memoryKills(b.cgroup) + b.cgroups.memoryKills(cgroup) // a hierarchy of version 1 counts each cgroup alone
	err = errors.Join(err, b.vacate(cgroup))
	if err != nil {
		return Exit{}, err
	}
	exit := c.exit()
	if problem := c.problem(); problem != "" && exit.Code != 0 && !exit.Killed {
		return Exit{}, &StartError{p.Args[0], problem}
	}
	exit.Memory = kills > killsBefore
	return exit, nil
}

// vacate ends what a command left behind, and removes its cgroup.
func (b *Box) vacate(cgroup string) error {
	if err := b.cgroups.clear(cgroup); err != nil {
		return fmt.Errorf("end what a command left: %w", err)
	}
	_ = b.cgroups.remove(cgroup) // an empty one goes with the box
	return nil
}

// Kill ends all processes of the box, and with them the box.
func (b *Box) Kill() { _ = b.cgroups.kill(b.cgroup) }

// Close ends all processes and removes everything. It waits for running commands. Closing again does nothing.
func (b *Box) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	b.mu.Unlock()
	var errs []error
	if b.stdin != nil {
		_ = b.cgroups.kill(b.cgroup) // quicker than to wait until the first process sees that its input has ended
		errs = append(errs, b.stdin.Close())
		select {
		case <-b.ended:
		case <-time.After(b.runtime.grace()): // crun takes 1.5 s to remove cgroups, which clean does anyway
			_ = b.keeper.Kill()
			<-b.ended
			errs = append(errs, b.runtime.remove(b))
		}
	}
	b.open.Wait()
	errs = append(errs, b.follower.close())
	for _, c := range []io.Closer{b.work, b.run} {
		if !reflect.ValueOf(c).IsNil() {
			errs = append(errs, c.Close())
		}
	}
	errs = append(errs, b.thread.run(func() error {
		_ = unix.Unmount(filesDir, unix.MNT_DETACH) // frees the disk now, not when the thread has ended
		return nil
	}))
	b.thread.end()
	if b.lock != nil {
		errs = append(errs, clean(b.dir, b.cgroups, b.parent), b.lock.Close())
	}
	return errors.Join(errs...)
}

// mapped reports whether this process's user namespace has these user ids.
func mapped(first, size uint64) bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	for line := range strings.Lines(string(text)) {
		var inside, outside, many uint64
		if _, err := fmt.Sscan(line, &inside, &outside, &many); err == nil && inside <= first && first+size <= inside+many {
			return true
		}
	}
	return err != nil // nobody knows
}

// userNamespaces reports whether the machine has user namespaces.
func userNamespaces() bool {
	text, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return err == nil && n > 0 && exists("/proc/self/ns/user")
}

// rlimits are those of each process. None is above this process's own, which only a privileged one may exceed.
func rlimits() []rlimit {
	var all []rlimit
	for _, r := range []struct {
		name  string
		which int
		most  uint64
	}{
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 1}, // not 0, which a core_pattern with a program ignores
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, 65536},
		{"RLIMIT_MEMLOCK", unix.RLIMIT_MEMLOCK, 8 << 20},
		{"RLIMIT_MSGQUEUE", unix.RLIMIT_MSGQUEUE, 0},
	} {
		var own unix.Rlimit
		if err := unix.Getrlimit(r.which, &own); err == nil {
			r.most = min(r.most, own.Max)
		}
		all = append(all, rlimit{r.name, r.most, r.most})
	}
	return all
}
