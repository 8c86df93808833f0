package box

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// engine is a container engine: podman or docker. It makes a container with an almost empty root and the first process. The box then mounts
// its file systems into that, so an engine need not see them, and stands in a mount namespace of its own if it likes. Commands start through
// the program of the first process, which waits until the box has put it into a cgroup of its own. An engine does not do that.
type engine struct {
	docker bool
	path   string
	// args come before the command.
	args, env []string
	// image is docker's, of the skeleton.
	image string
	// host is docker's socket. "" means the usual one.
	host string
	// devices are files that go among the container's devices.
	devices []mount
}

const (
	skeletonDir = runDir + "/skeleton"
	engineDir   = runDir + "/engine"
	// engineInit is where the first process of a container of an engine is.
	engineInit = "/.init"
	// engineLaunch is the same program, for commands. Nobody in the container may read the file: so the kernel shows nobody there the memory and
	// the open files of a process that runs it, from the moment in which that is executed.
	engineLaunch = "/.launch"
	// engineFile, in the folder of a box, says which docker has a container of it.
	engineFile = "docker"
)

func newPodman(path string) (ociRuntime, error) {
	for _, n := range []string{"crun", "runc"} {
		oci, err := exec.LookPath(n)
		if err != nil {
			continue
		}
		return &engine{
			path: path,
			// All that it keeps is in memory that the thread of the box has alone. It reads no configuration of the machine's, which could
			// add mounts, devices and variables.
			args: []string{
				"--root", engineDir + "/root", "--runroot", engineDir + "/run", "--tmpdir", engineDir + "/tmp", "--storage-driver", "vfs",
				"--cgroup-manager", "cgroupfs", "--events-backend", "none", "--runtime", oci,
			},
			env: []string{searchPath, "HOME=" + engineDir, "XDG_RUNTIME_DIR=" + engineDir, "CONTAINERS_CONF=" + engineDir + "/containers.conf", "CONTAINERS_STORAGE_CONF=" + engineDir + "/storage.conf"},
		}, nil
	}
	return nil, fmt.Errorf("%w: podman needs crun or runc", ErrUnavailable)
}

func newDocker(path string) (ociRuntime, error) {
	host := os.Getenv("DOCKER_HOST")
	if host != "" && !strings.HasPrefix(host, "unix://") {
		return nil, fmt.Errorf("%w: DOCKER_HOST names no socket of this machine (unix://), and a sandbox's files are here", ErrUnavailable)
	}
	return newDockerAt(path, host), nil
}

func newDockerAt(path, host string) *engine {
	e := &engine{docker: true, path: path, host: host, env: []string{searchPath, "DOCKER_CONFIG=/nonexistent"}} // whose proxies it would pass on
	if host != "" {
		e.env = append(e.env, "DOCKER_HOST="+host)
	}
	return e
}

func (e *engine) name() string {
	if e.docker {
		return e.path
	}
	return e.path + " with " + e.args[len(e.args)-1]
}

func (e *engine) grace() time.Duration { return closing }

func (e *engine) command(args ...string) *exec.Cmd {
	cmd := exec.Command(e.path, slices.Concat(e.args, args)...) //nolint:noctx // a box ends its programs itself, in the right order
	cmd.Env = e.env
	cmd.Dir = "/"
	return cmd
}

// begin starts podman where the mounts of the box are. docker's socket is not there.
func (e *engine) begin(b *Box, cmd *exec.Cmd) error {
	if e.docker {
		return cmd.Start()
	}
	return b.thread.run(cmd.Start)
}

// output runs a command of the engine to its end. It may not be called on the thread of the box.
func (e *engine) output(ctx context.Context, b *Box, stdin io.Reader, args ...string) (string, error) {
	cmd := e.command(args...)
	var out, problem bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &problem
	if err := e.begin(b, cmd); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	err := cmd.Wait()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %.500s", filepath.Base(e.path), args[0], err, strings.TrimSpace(problem.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// answers says why nothing answers at docker's socket, in words that docker's versions do not change.
func (e *engine) answers(ctx context.Context) error {
	at := strings.TrimPrefix(e.host, "unix://")
	if at == "" {
		at = "/var/run/docker.sock"
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", at)
	if err == nil {
		return conn.Close()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("docker is installed, but its daemon does not run: nothing listens on %s; start it, as with systemctl start docker, or have DOCKER_HOST name another socket", at)
	}
	return fmt.Errorf("docker's daemon cannot be reached on %s: %s", at, reason(err))
}

// admit refuses a docker that cannot keep what a box promises.
func (e *engine) admit(ctx context.Context, b *Box, o Options) error {
	if !e.docker {
		return nil
	}
	if err := e.answers(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	text, err := e.output(ctx, b, nil, "info", "--format", "{{json .}}")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	var info struct {
		CgroupDriver    string
		SecurityOptions []string
		ServerErrors    []string
	}
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		return fmt.Errorf("%w: docker info: %w", ErrUnavailable, err)
	}
	has := func(option string) bool {
		return slices.ContainsFunc(info.SecurityOptions, func(s string) bool { return strings.HasPrefix(s, "name="+option) })
	}
	switch {
	case len(info.ServerErrors) > 0:
		return fmt.Errorf("%w: docker: %.300s", ErrUnavailable, info.ServerErrors[0])
	case !has("userns") && !o.WithoutUserNamespace:
		return fmt.Errorf("%w: docker runs containers without a user namespace; set \"userns-remap\": \"default\" in its daemon.json", ErrUnavailable)
	case !has("seccomp"):
		return fmt.Errorf("%w: docker was built without seccomp", ErrUnavailable)
	case has("rootless"):
		return fmt.Errorf("%w: docker is rootless, so its containers are not where stile can limit and furnish them", ErrUnavailable)
	case info.CgroupDriver != "cgroupfs":
		return fmt.Errorf("%w: docker leaves cgroups to %s; set \"exec-opts\": [\"native.cgroupdriver=cgroupfs\"] in its daemon.json", ErrUnavailable, info.CgroupDriver)
	}
	return nil
}

func (e *engine) prepare(ctx context.Context, b *Box, o Options, _ Limits, programs []string, files []mount) error {
	if err := e.admit(ctx, b, o); err != nil {
		return err
	}
	e.devices = slices.DeleteFunc(slices.Clone(files), func(m mount) bool { return !amongDevices(m) })
	var content []byte
	var digest string
	if err := b.thread.run(func() (err error) {
		if err := errors.Join(complete(rootDir, filesDir, programs, files), os.Mkdir(skeletonDir, 0o755), os.Mkdir(engineDir, 0o711)); err != nil {
			return err
		}
		if err := skeleton(rootDir, skeletonDir); err != nil {
			return fmt.Errorf("make the root: %w", err)
		}
		if !e.docker {
			return errors.Join(
				os.WriteFile(engineDir+"/containers.conf", []byte("[engine]\nlock_type = \"file\"\n"), 0o600),
				os.WriteFile(engineDir+"/storage.conf", []byte("[storage]\ndriver = \"vfs\"\nrunroot = \""+engineDir+"/run\"\ngraphroot = \""+engineDir+"/root\"\n"), 0o600),
				os.WriteFile(engineDir+"/seccomp.json", seccomp, 0o600),
			)
		}
		content, digest, err = archive(skeletonDir)
		return err
	}); err != nil || !e.docker {
		return err
	}
	e.image = "stile-sandbox:" + digest
	if err := errors.Join(
		os.WriteFile(filepath.Join(b.dir, engineFile), []byte(e.path+"\n"+e.host), 0o600),
		os.WriteFile(filepath.Join(b.dir, "seccomp.json"), seccomp, 0o600),
	); err != nil {
		return err
	}
	if _, err := e.output(ctx, b, nil, "image", "inspect", "--format", "{{.Id}}", e.image); err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	_, err := e.output(ctx, b, bytes.NewReader(content), "import", "--message", "empty folders, for the sandboxes of stile", "-", e.image)
	return err
}

func (e *engine) run(b *Box, l Limits) *exec.Cmd {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	profile := engineDir + "/seccomp.json"
	if e.docker {
		profile = filepath.Join(b.dir, "seccomp.json")
	}
	args := []string{
		"run", "--interactive", "--rm", "--name", b.id, "--label", "stile.sandbox=" + b.dir, "--network", "none", "--ipc", "private", "--cgroupns", "private",
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--security-opt", "seccomp=" + profile, "--read-only", "--user", "0:0", "--hostname", "sandbox",
		"--memory", number(l.Memory), "--memory-swap", number(l.Memory), "--pids-limit", number(l.Processes), "--cpu-period", number(cpuPeriod), "--cpu-quota", number(int64(l.CPU * cpuPeriod)),
		"--cgroup-parent", b.parent, "--log-driver", "none",
	}
	for _, r := range append(rlimits(), rlimit{"RLIMIT_NPROC", userProcesses, userProcesses}) {
		name := strings.ToLower(strings.TrimPrefix(r.Type, "RLIMIT_"))
		args = append(args, "--ulimit", fmt.Sprintf("%s=%d:%d", name, r.Soft, r.Hard))
	}
	if e.docker {
		return e.command(append(args, "--pull", "never", "--entrypoint", engineInit, e.image)...)
	}
	if b.first != 0 {
		mapping := fmt.Sprintf("0:%d:%d", b.first, rangeSize)
		args = append(args, "--uidmap", mapping, "--gidmap", mapping)
	}
	return e.command(append(args, "--pid", "private", "--uts", "private", "--read-only-tmpfs=false", "--http-proxy=false", "--no-hosts", "--passwd=false",
		"--systemd=false", "--sdnotify", "ignore", "--cgroups", "no-conmon", "--entrypoint", `["`+engineInit+`"]`, "--rootfs", skeletonDir)...)
}

// started finds the first process. It is the container's if its cgroup is: a docker that runs elsewhere knows it by another number.
func (e *engine) started(ctx context.Context, b *Box) (int, error) {
	text, err := e.output(ctx, b, nil, "inspect", "--format", "{{.State.Pid}} {{.Id}}", b.id)
	if err != nil {
		return 0, err
	}
	number, id, _ := strings.Cut(text, " ")
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 0 || len(id) < 32 {
		return 0, fmt.Errorf("the engine says %.100q of its container", text)
	}
	cgroups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return 0, fmt.Errorf("%w: the container's process is not one of this machine: %s", ErrUnavailable, reason(err))
	}
	found := ""
	for line := range strings.Lines(string(cgroups)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 || b.cgroups.unified != (part[1] == "") {
			continue
		}
		if !b.cgroups.unified && !slices.Contains([]string{"memory", "pids", "freezer"}, part[1]) {
			continue
		}
		if !strings.HasPrefix(part[2], b.parent+"/") || !strings.Contains(part[2], id) || found != "" && found != part[2] {
			return 0, fmt.Errorf("%w: the container's process is in the cgroup %.200s, which is not the box's", ErrUnavailable, part[2])
		}
		found = part[2]
	}
	if found == "" {
		return 0, fmt.Errorf("%w: the container has no cgroup", ErrUnavailable)
	}
	b.cgroup = found
	return pid, nil
}

// furnish puts the file systems of the box over the container's empty folders.
func (e *engine) furnish(b *Box) error {
	first, err := firstUser(b.pid)
	if err != nil {
		return err
	}
	b.first = first
	if err := foreign(b.pid); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err := b.cgroups.forbidSwap(b.cgroup); err != nil {
		return err
	}
	trees, err := b.take(e.devices)
	defer func() {
		for _, t := range trees {
			_ = unix.Close(t.fd)
		}
	}()
	if err != nil {
		return err
	}
	inside, err := newThread()
	if err != nil {
		return err
	}
	defer inside.end()
	namespace, err := unix.Open(fmt.Sprintf("/proc/%d/ns/mnt", b.pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(namespace) }()
	return inside.run(func() error {
		if err := unix.Setns(namespace, unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("enter the container: %w", err)
		}
		for _, t := range trees {
			if strings.HasPrefix(t.name, "dev/") {
				if err := createAs(int(b.first), "/"+t.name); err != nil {
					return err
				}
			}
			if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, "/"+t.name, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
				return fmt.Errorf("mount /%s: %w", t.name, err)
			}
		}
		return cover()
	})
}

// createAs makes an empty file as a user, because the file system knows only the container's. It runs on a thread that is not used otherwise.
func createAs(user int, path string) error {
	if err := errors.Join(unix.Setfsgid(user), unix.Setfsuid(user)); err != nil {
		return err
	}
	err := os.WriteFile(path, nil, 0o444)
	return errors.Join(err, unix.Setfsuid(0), unix.Setfsgid(0))
}

// tree is a mount that is nowhere yet.
type tree struct {
	name string
	fd   int
}

// take makes copies of the mounts at the top of the box's root, and of files.
func (b *Box) take(files []mount) (trees []tree, err error) {
	err = b.thread.run(func() error {
		if err := b.own(); err != nil {
			return err
		}
		entries, err := os.ReadDir(rootDir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !tops(e) || e.Name() == "proc" || e.Name() == "dev" {
				continue
			}
			fd, err := unix.OpenTree(unix.AT_FDCWD, filepath.Join(rootDir, e.Name()), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
			if err != nil {
				return fmt.Errorf("copy the mount of /%s: %w", e.Name(), err)
			}
			trees = append(trees, tree{e.Name(), fd})
		}
		for _, f := range files {
			fd, err := unix.OpenTree(unix.AT_FDCWD, f.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			if err != nil {
				return err
			}
			trees = append(trees, tree{strings.TrimPrefix(f.Destination, "/"), fd})
			attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC}
			if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attributes); err != nil {
				return err
			}
		}
		return nil
	})
	return trees, err
}

// cover makes the folders that the engine made like those of other boxes. It runs in the container's mounts.
func cover() error {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Unmount("/dev/mqueue", unix.MNT_DETACH); err == nil {
		if err := unix.Rmdir("/dev/mqueue"); err != nil {
			return err
		}
	}
	if err := unix.Mount("", "/dev/shm", "", unix.MS_REMOUNT|quiet, "size=64m,nr_inodes=4096"); err != nil {
		return fmt.Errorf("limit /dev/shm: %w", err)
	}
	if err := unix.Mount("", "/dev", "", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NOEXEC, "size=64k,nr_inodes=64"); err != nil {
		return fmt.Errorf("limit /dev: %w", err)
	}
	for _, p := range maskedPaths {
		info, err := os.Lstat(p)
		if err != nil {
			continue // this kernel does not have it
		}
		if info.IsDir() {
			err = unix.Mount("tmpfs", p, "tmpfs", unix.MS_RDONLY|quiet, "size=0k,nr_inodes=1")
		} else {
			err = unix.Mount("/dev/null", p, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("mask %s: %w", p, err)
		}
	}
	for _, p := range readonlyPaths {
		err := unix.Mount(p, p, "", unix.MS_BIND|unix.MS_REC, "")
		if err == nil {
			err = unix.Mount("", p, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|quiet, "")
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("protect %s: %w", p, err)
		}
	}
	return nil
}

// Of the machine, a container of an engine may have these mounts and devices at first, and no others.
var (
	usualMounts  = []string{"/", "/etc/resolv.conf", "/etc/hostname", "/etc/hosts", "/run/.containerenv"}
	usualDevices = []string{
		"null", "zero", "full", "tty", "random", "urandom", "pts", "ptmx", "shm", "mqueue", "fd", "stdin", "stdout", "stderr", "core", "console",
	}
)

// foreign reports a mount or a device that the configuration of an engine adds to containers, such as the engine's own socket.
func foreign(pid int) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			continue
		}
		at := fields[4]
		if at == "/" && !slices.Contains(strings.Split(fields[5], ","), "ro") {
			return errors.New("the engine leaves the container's root writable")
		}
		if !slices.Contains(usualMounts, at) && !strings.HasPrefix(at+"/", "/proc/") && !strings.HasPrefix(at+"/", "/sys/") && !strings.HasPrefix(at+"/", "/dev/") {
			return fmt.Errorf("the engine mounts %.200s into its containers: its configuration says so", at)
		}
	}
	devices, err := os.ReadDir(fmt.Sprintf("/proc/%d/root/dev", pid))
	for _, d := range devices {
		if !slices.Contains(usualDevices, d.Name()) {
			return fmt.Errorf("the engine gives its containers the device %.200s: its configuration says so", d.Name())
		}
	}
	return err
}

// firstUser is the user id, on the machine, of root in the container of a process.
func firstUser(pid int) (uint32, error) {
	var ids [2]uint64
	for i, file := range []string{"uid_map", "gid_map"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil {
			return 0, err
		}
		fields := strings.Fields(string(text))
		if len(fields) < 3 || fields[0] != "0" {
			return 0, fmt.Errorf("%w: the container's user namespace has no root", ErrUnavailable)
		}
		if ids[i], err = strconv.ParseUint(fields[1], 10, 32); err != nil {
			return 0, err
		}
	}
	if ids[0] != ids[1] {
		return 0, fmt.Errorf("%w: the container's users begin at %d and its groups at %d; a sandbox needs one number", ErrUnavailable, ids[0], ids[1])
	}
	return uint32(ids[0]), nil
}

// exec is a process that the first process's program starts once it is in its cgroup.
func (e *engine) exec(b *Box, below string, p Process) (*command, error) {
	config := b.root.newProcess(p.Args, p.Env, p.Dir)
	var text bytes.Buffer
	for _, part := range slices.Concat([]string{config.Cwd}, config.Args, config.Env) {
		text.WriteString(part)
		text.WriteByte(0)
	}
	if text.Len() > maxLaunch {
		return nil, &StartError{p.Args[0], tooLong}
	}
	head := make([]byte, 0, 12+text.Len())
	for _, n := range []int{text.Len(), len(config.Args), len(config.Env)} {
		head = binary.NativeEndian.AppendUint32(head, uint32(n))
	}
	cgroup := b.cgroup + "/" + below
	l := &launch{token: rand.Text(), text: append(head, text.Bytes()...), ready: make(chan struct{})}
	l.place = func() (int, error) { return b.cgroups.adopt(b.cgroup, cgroup, l.token) }
	return &command{
		cmd:     e.command("exec", "--interactive", "--user", "0:0", b.id, engineLaunch, l.token),
		process: p, launch: l, pid: func() int { return int(l.pid.Load()) }, problem: l.problem, done: func() {},
	}, nil
}

// userProcesses is how many processes all boxes with the same users may have, beside the limit of each. Engines ask for more than this
// process may have unless they are told.
const userProcesses = 32768

// maxLaunch bounds what is told to the program that starts another: it has it on its stack.
const maxLaunch = 512 << 10

func (e *engine) remove(b *Box) error {
	if !e.docker {
		return nil // what it knows is in the memory of the thread
	}
	return until("docker did not remove a container", func() (bool, error) {
		cmd := e.command("rm", "--force", b.id)
		end := time.AfterFunc(2*closing, func() { _ = cmd.Process.Kill() })
		defer end.Stop()
		out, err := cmd.CombinedOutput()
		said := strings.ToLower(string(out))
		switch {
		case err == nil, strings.Contains(said, "no such container"):
			return true, nil
		case strings.Contains(said, "already in progress"): // by itself, since its processes have ended
			return false, nil
		default:
			return false, fmt.Errorf("docker rm: %w: %.300s", err, out)
		}
	})
}

// removeLeft removes the container that a docker still has of a box whose process died.
func removeLeft(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, engineFile))
	path, host, whole := strings.Cut(string(text), "\n")
	if err != nil || !whole || !exists(path) { // a file that was cut off is older than the container
		return ignoreMissing(err)
	}
	return newDockerAt(path, host).remove(&Box{id: name(dir)})
}
