package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stilehost/stile/capabilities/internal/trees"
	"github.com/stilehost/stile/capabilities/sandbox/internal/dockerd"
)

// TestMain also runs the programs of the tests below, inside of a box or beside this process.
func TestMain(m *testing.M) {
	switch os.Getenv("STILE_TEST_ROLE") {
	case "calls":
		forbidden()
	case "change":
		if err := change(os.Args[1:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	case "start":
		_, err := Start(context.Background(), Options{Dir: os.Getenv("STILE_TEST_DIR")}, Root{}, testLimits)
		fmt.Println(err)
	case "owner":
		own(os.Getenv("STILE_TEST_DIR"))
	default:
		code := m.Run()
		if dockerStarted {
			if s, err := docker(); err == nil {
				if err := s.Stop(); err != nil {
					fmt.Println(err)
					code = 1
				}
			}
		}
		os.Exit(code)
	}
}

// carry puts this test's program into a box.
func carry(t *testing.T, b *Box) {
	t.Helper()
	file, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := b.Tree().Write("program", 0o755, file); err != nil {
		t.Fatal(err)
	}
}

// TestSeesNothing looks for what is the machine's from inside of a box.
func TestSeesNothing(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		t.Setenv("STILE_SECRET_OF_HOST", "x")
		secret := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		b := start(t, o, Root{}, testLimits)
		for command, want := range map[string]string{
			"cat /etc/shadow /etc/gshadow /etc/sudoers /root/.profile " + secret + " 2>/dev/null": "",
			"ls /root /mnt /media /srv /opt /boot 2>/dev/null":                                    "",
			"ls -A /home /sys /run /tmp /var/tmp /work":                                           "/home:\n\n/run:\n\n/sys:\n\n/tmp:\n\n/var/tmp:\n\n/work:\n",
			"env | sed 's/=.*//' | grep -v -e ^_ -e ^PWD -e ^OLDPWD -e ^SHLVL | sort":             "HOME\nLANG\nPATH\nTMPDIR\n",
			"wc -l < /etc/passwd": "2\n",
			"cat /proc/kcore /proc/kallsyms /proc/keys /proc/timer_list /proc/kmsg 2>/dev/null | head -c 1":                        "",
			"for p in /proc/[0-9]*; do cat $p/comm; done | grep -v -e ^.*init -e ^sh -e ^cat -e ^grep":                             "",
			"cat /proc/[0-9]*/environ 2>/dev/null | grep -a -c STILE":                                                              "0\n",
			"ls /dev | grep -v -e ^core$ -e ^init$":                                                                                "fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n",
			"cat /proc/sys/kernel/hostname":                                                                                        "sandbox\n",
			"id -u; cat /proc/self/uid_map | tr -s ' '":                                                                            fmt.Sprintf("0\n 0 %d 65536\n", b.Owner()),
			"grep -c -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb):.0000000000000000$|^NoNewPrivs:.1$|^Seccomp:.2$' /proc/self/status": "7\n",
			"grep 'core file' /proc/self/limits | tr -s ' '":                                                                       "Max core file size 1 1 bytes \n",
			"sh -c 'kill -SEGV $$'; ls /work":                                                                                      "",
			"cat /proc/self/cgroup | grep -c '\\.\\.'":                                                                             "0\n",
		} {
			if got := sh(t, b, command+"; true"); got.out != want && got.out != strings.Replace(want, "console\n", "", 1) {
				t.Errorf("%s:\n%q, want\n%q (%s)", command, got.out, want, got.err)
			}
		}
	})
}

// TestCannotWrite tries to change what is the machine's, or the box's own confinement.
func TestCannotWrite(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		b := start(t, o, Root{}, testLimits)
		for _, command := range []string{
			"echo x > /usr/bin/x", "echo x > /etc/passwd", "echo x > /x", "mkdir /etc/x", "rm /usr/bin/git", "chmod 777 /usr", "chown 0:0 /usr/bin/git",
			"echo 1 > /proc/sys/kernel/hostname", "echo x > /proc/sys/kernel/core_pattern", "echo b > /proc/sysrq-trigger", "echo 0 > /proc/sys/vm/overcommit_memory",
			"echo 1 > /sys/x", "mkdir /sys/fs", "echo -1000 > /proc/self/oom_score_adj", "echo 0 0 1 > /proc/self/uid_map", "echo deny > /proc/self/setgroups",
			"mount -t tmpfs x /tmp", "mount --bind /usr /work", "umount /proc", "mount -o remount,rw /usr", "unshare -U true", "unshare -m true", "nsenter -t 1 -m true",
			"mknod /work/d c 1 1", "mknod /dev/d b 7 0", "chroot /work true", "hostname x", "date -s 2000-01-01", "ln /usr/bin/git /work/git", "ln /etc/passwd /work/p",
			"nice -n -5 true 2>&1 | grep -q . && false", "renice -n -5 $$", "kill -9 1 && test ! -e /proc/1", "ulimit -c 1000", "ulimit -n 10000000", "losetup -f", "dmesg",
			"cp /bin/true /work/s && chmod 4755 /work/s && chown 1:1 /work/s",
		} {
			if got := sh(t, b, command); got.Code == 0 {
				t.Errorf("%s: it works: %s%s", command, got.out, got.err)
			}
		}
	})
}

// forbidden makes system calls that a box forbids, and prints those that work.
func forbidden() {
	try := func(name string, err error) {
		if err == nil {
			fmt.Println(name)
		}
	}
	call := func(name string, trap uintptr, args ...uintptr) {
		args = append(args, 0, 0, 0, 0, 0, 0)
		_, _, number := unix.Syscall6(trap, args[0], args[1], args[2], args[3], args[4], args[5])
		if number != unix.EPERM && number != unix.ENOSYS && number != unix.EACCES {
			fmt.Println(name, int(number), number)
		}
	}
	call("keyctl", unix.SYS_KEYCTL, 0, 0)
	call("add_key", unix.SYS_ADD_KEY)
	call("request_key", unix.SYS_REQUEST_KEY)
	call("bpf", unix.SYS_BPF)
	call("io_uring_setup", unix.SYS_IO_URING_SETUP, 8)
	call("perf_event_open", unix.SYS_PERF_EVENT_OPEN)
	call("userfaultfd", unix.SYS_USERFAULTFD)
	call("unshare", unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	call("setns", unix.SYS_SETNS)
	call("mount", unix.SYS_MOUNT)
	call("fsopen", unix.SYS_FSOPEN)
	call("open_tree", unix.SYS_OPEN_TREE)
	call("move_mount", unix.SYS_MOVE_MOUNT)
	call("pivot_root", unix.SYS_PIVOT_ROOT)
	call("chroot", unix.SYS_CHROOT)
	call("reboot", unix.SYS_REBOOT)
	call("kexec_load", unix.SYS_KEXEC_LOAD)
	call("init_module", unix.SYS_INIT_MODULE)
	call("open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT)
	call("name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT)
	call("fanotify_init", unix.SYS_FANOTIFY_INIT)
	call("swapon", unix.SYS_SWAPON)
	call("acct", unix.SYS_ACCT)
	call("settimeofday", unix.SYS_SETTIMEOFDAY)
	call("quotactl", unix.SYS_QUOTACTL)
	call("syslog", unix.SYS_SYSLOG, 10)
	call("pidfd_getfd", unix.SYS_PIDFD_GETFD)
	call("clone with a user namespace", unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD))
	call("personality", unix.SYS_PERSONALITY, 0x0200000)
	for name, s := range map[string][3]int{
		"raw socket": {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, "packet socket": {unix.AF_PACKET, unix.SOCK_RAW, 0},
		"vsock": {unix.AF_VSOCK, unix.SOCK_STREAM, 0}, "alg": {unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, "netfilter": {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER},
		"audit": {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, "bluetooth": {unix.AF_BLUETOOTH, unix.SOCK_STREAM, 0}, "tipc": {unix.AF_TIPC, unix.SOCK_STREAM, 0},
	} {
		fd, err := unix.Socket(s[0], s[1], s[2])
		try(name, err)
		_ = unix.Close(fd)
	}
	var dialer net.Dialer
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for address := range strings.SplitSeq(os.Getenv("STILE_TEST_ADDRESSES"), " ") {
		network, where, _ := strings.Cut(address, "=")
		c, err := dialer.DialContext(ctx, network, where)
		try("dial "+address, err)
		if err == nil {
			_ = c.Close()
		}
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println("no loopback of its own:", err)
		return
	}
	c, err := dialer.DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		fmt.Println("no loopback of its own:", err)
		return
	}
	_ = c.Close()
}

func TestForbiddenCalls(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		var config net.ListenConfig
		tcp, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tcp.Close() }()
		abstract, err := config.Listen(t.Context(), "unix", fmt.Sprintf("@stile-test-%d", os.Getpid()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = abstract.Close() }()
		b := start(t, o, Root{}, testLimits)
		carry(t, b)
		var out strings.Builder
		exit, err := b.Run(t.Context(), Process{
			Args: []string{"/work/program"}, Output: func(_ Stream, part []byte) { out.Write(part) },
			Env: []string{"STILE_TEST_ROLE=calls", "STILE_TEST_ADDRESSES=tcp=" + tcp.Addr().String() + " unix=" + abstract.Addr().String() + " tcp=192.0.2.1:80 udp=192.0.2.1:53 tcp=[::1]:22"},
		})
		if err != nil || exit.Code != 0 || out.String() != "" {
			t.Errorf("%+v, %v: these work:\n%s", exit, err, out.String())
		}
	})
}

// TestBombs takes all there is of processes, memory and disk. The machine, and the box afterwards, are as before.
func TestBombs(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		for _, storage := range []string{inMemory, onDisk} {
			o.Storage = storage

			l := Limits{Memory: 128 << 20, Disk: 64 << 20, Files: 8192, Processes: 64, CPU: 1}
			b := start(t, o, Root{}, l)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if o, err := try(ctx, b, "", "/bin/sh", "-c", "trap '' TERM INT HUP; (f() { f | f & }; f) & while :; do :; done"); err != nil || !o.Killed {
				t.Errorf("a fork bomb: %+v, %v", o.Exit, err)
			}
			if got := sh(t, b, "ls -d /proc/[0-9]* | wc -l"); got.out != "4\n" && got.out != "5\n" && got.out != "3\n" {
				t.Errorf("it left %s processes: %s", strings.TrimSpace(got.out), sh(t, b, "ps ax").out)
			}
			got := sh(t, b, "node -e 'const a = []; for (;;) a.push(Buffer.alloc(1 << 20, 1))'")
			if got.Code == 0 || !got.Memory && storage == onDisk {
				t.Errorf("a memory hog: %+v", got.Exit)
			}
			for _, at := range []string{"/work", "/tmp", "/home", "/run", "/var/tmp", "/dev/shm"} {
				script := fmt.Sprintf("cd %s && dd if=/dev/zero of=fill bs=1M count=500 2>/dev/null; s=$(stat -c %%s fill); rm -f fill; test $s -le %d", at, l.Disk)
				if got := sh(t, b, script); got.Code != 0 && got.Code != 137 {
					t.Errorf("%s: %+v", script, got)
				}
				sh(t, b, "rm -f "+at+"/fill")
			}
			if got := sh(t, b, "mkdir /work/many && cd /work/many && i=0; while [ $i -lt 100000 ] && : > f$i; do i=$((i+1)); done 2>/dev/null; ls | wc -l"); strings.TrimSpace(got.out) > "9" {
				t.Errorf("a box has %s files", strings.TrimSpace(got.out))
			}
			if got := sh(t, b, "rm -rf /work/many && echo fine > /work/x && cat /work/x"); got.out != "fine\n" {
				t.Errorf("afterwards: %+v", got)
			}
		}
	})
}

// TestZombies has processes whose parents are gone end.
func TestZombies(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		b := start(t, o, Root{}, testLimits)
		got := sh(t, b, `for i in 1 2 3 4 5; do (setsid sh -c 'sh -c "> /tmp/ends'$i'; exit 1" & exit' &); done; i=0; while [ $i -lt 3000 ] && { [ ! -e /tmp/ends5 ] || cat /proc/[0-9]*/stat 2>/dev/null | grep -q ') Z'; }; do i=$((i+1)); sleep 0.01; done; [ $i -lt 3000 ] && echo none`)
		if got.out != "none\n" {
			t.Errorf("zombies stay: %+v", got)
		}
	})
}

// TestTreeRaces reads a tree while a process replaces folders by links that lead out of it. Nothing of the outside is read.
func TestTreeRaces(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		b := start(t, o, Root{}, testLimits)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		sh(t, b, "mkdir -p a/etc c/etc; echo inside > a/etc/passwd; echo inside > c/etc/passwd; ln -s / b; ln -s /proc/self/root d; ln -s ../../../.. e")
		go func() {
			_, err := try(ctx, b, "", "/bin/sh", "-c", "while :; do mv -T a x && mv -T b a && mv -T a b && mv -T x a; mv -T c x; mv -T d c; mv -T c d; mv -T x c; done 2>/dev/null")
			done <- err
		}()
		tree := b.Tree()
		for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); {
			if err := tree.Survey("", func(e trees.Entry) error {
				if strings.Count(e.Path, "/") > 2 {
					return fmt.Errorf("the survey left the tree: %s", e.Path)
				}
				return nil
			}, func(string, string) {}); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			for _, p := range []string{"a/etc/passwd", "b/etc/passwd", "c/etc/passwd", "d/etc/passwd", "e/etc/passwd", "../etc/passwd", "/etc/passwd"} {
				file, err := tree.Open(p)
				if err != nil {
					continue
				}
				text, _ := io.ReadAll(file)
				_ = file.Close()
				if string(text) != "inside\n" {
					t.Fatalf("%s: %q", p, text)
				}
				if err := tree.Write(strings.TrimSuffix(p, "passwd")+"new", 0o644, strings.NewReader("x")); err == nil {
					if _, err := os.Stat("/etc/new"); err == nil {
						t.Fatal("a file was written to the machine")
					}
				}
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// own makes a box in a process of its own, says so, and waits to be killed.
func own(dir string) {
	b, err := Start(context.Background(), Options{Dir: dir, Storage: onDisk, Runtime: os.Getenv("STILE_TEST_RUNTIME")}, Root{}, testLimits)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_, _ = b.Run(context.Background(), Process{
		Args:   []string{"/bin/sh", "-c", "trap '' TERM HUP; setsid sleep 1000 & sleep 1000 & echo started; sleep 1000"},
		Output: func(_ Stream, part []byte) { fmt.Print(string(part)) },
	})
}

// TestKilled kills the process that has a box. Nothing is left of the box but a folder and empty cgroups, and those go with the next start.
func TestKilled(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		o.Dir = dir
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
		cmd.Env = append(os.Environ(), "STILE_TEST_ROLE=owner", "STILE_TEST_DIR="+dir, "STILE_TEST_RUNTIME="+o.Runtime)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 1024)
		if n, err := out.Read(line); err != nil || string(line[:n]) != "started\n" {
			t.Fatalf("%q, %v", line[:n], err)
		}
		groups, cgroup := findCgroups(), "/stile/"+name(filepath.Join(dir, "0"))
		pids := members(groups, cgroup)
		if len(pids) < 4 {
			t.Fatalf("only %d processes are in the box", len(pids))
		}
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		for _, pid := range pids {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				continue // it is gone
			}
			if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000); err != nil || n != 1 {
				t.Errorf("process %d is still there: %v", pid, err)
			}
			_ = unix.Close(fd)
		}
		if left := eventually(func() string { return string(loops(t, dir)) }); left != "" {
			t.Errorf("loop devices: %s", left)
		}
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil || strings.Contains(string(mounts), dir) || strings.Contains(string(mounts), "/run/files") {
			t.Errorf("mounts: %v\n%s", err, mounts)
		}
		if err := Sweep(dir); err != nil {
			t.Error(err)
		}
		if left := leftovers(t, groups, dir, cgroup); left != nil {
			t.Errorf("left after the next start: %q", left)
		}
		b := start(t, o, Root{}, testLimits)
		if got := sh(t, b, "echo again"); got.out != "again\n" {
			t.Errorf("got %+v", got)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if left := eventually(func() string { return strings.Join(leftovers(t, groups, dir, cgroup), " ") + containers(t, o) }); left != "" {
			t.Errorf("left after a box was closed: %s", left)
		}
	})
}

// TestClosed leaves nothing behind, however often boxes are made.
func TestClosed(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		o.Dir = dir
		for range 5 {
			b := start(t, o, Root{}, testLimits)
			sh(t, b, "sleep 1000 & echo x > /work/x")
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		left := eventually(func() string {
			return strings.Join(leftovers(t, findCgroups(), dir, "/stile/"+name(filepath.Join(dir, "0"))), " ") + containers(t, o)
		})
		if left != "" {
			t.Errorf("left: %s", left)
		}
		threads, err := filepath.Glob("/proc/self/task/*/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range threads {
			if text, _ := os.ReadFile(f); strings.Contains(string(text), " /run/files ") {
				t.Errorf("%s still has the mounts of a box", f)
			}
		}
	})
}

// containers are those that the docker of these tests has of boxes.
func containers(t *testing.T, o Options) string {
	if o.Runtime != "docker" {
		return ""
	}
	out, err := exec.CommandContext(t.Context(), "docker", "ps", "--all", "--quiet", "--filter", "label=stile.sandbox").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestNamesOfPrograms has a root with links in the places of the programs that a box of an engine has. They lead to files of the machine.
func TestNamesOfPrograms(t *testing.T) {
	each(t, func(t *testing.T, o Options) {
		root, outside := rootOf(t), filepath.Join(t.TempDir(), "outside")
		for _, name := range []string{engineInit, engineLaunch} {
			if err := errors.Join(os.WriteFile(outside+name[1:], []byte("the machine's"), 0o644), os.Symlink(outside+name[1:], root+name)); err != nil {
				t.Fatal(err)
			}
		}
		b := start(t, o, Root{Dir: root}, testLimits)
		if got := run(t, b, "/bin/cat", "/proc/self/comm"); got.out != "cat\n" {
			t.Errorf("got %+v", got)
		}
		for _, name := range []string{engineInit, engineLaunch} {
			if text, err := os.ReadFile(outside + name[1:]); err != nil || string(text) != "the machine's" {
				t.Errorf("%s: the machine's file has %d bytes, %v", name, len(text), err)
			}
		}
	})
}

// TestImpostors has a process that is everywhere at once claim to be each process that an engine starts, before that is put into its
// cgroup. No process is ever outside of the cgroup of its command when that has ended.
func TestImpostors(t *testing.T) {
	for _, o := range []Options{{Runtime: "podman"}, {Runtime: "docker"}} {
		t.Run(o.Runtime, func(t *testing.T) {
			if o.Runtime == "docker" {
				useDocker(t)
			}
			b := start(t, o, Root{}, testLimits)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			claimed := make(chan struct{})
			first := sync.OnceFunc(func() { close(claimed) })
			go func() {
				// Each answers with a program of its own as soon as it is told to begin.
				_, err := b.Run(ctx, Process{
					Args: []string{"node", "-e", `
const fs = require("fs"), { spawn } = require("child_process"), seen = new Set();
for (;;) for (const p of fs.readdirSync("/proc")) {
  if (!/^[0-9]+$/.test(p)) continue;
  let c; try { c = fs.readFileSync("/proc/" + p + "/cmdline", "latin1"); } catch { continue; }
  const [program, token] = c.split("\0");
  if (program !== "/.launch" || !token || seen.has(token)) continue;
  seen.add(token);
  let input; try { input = fs.openSync("/proc/" + p + "/fd/0", "w"); } catch {}
  if (input !== undefined) {
    // Once the command of the box has begun, its input may be opened. A process that still waits now has waited when that was opened.
    let now; try { now = fs.readFileSync("/proc/" + p + "/cmdline", "latin1"); } catch {}
    if (now === c) console.log("wrote to its input");
    try { fs.writeSync(input, Buffer.alloc(12)); } catch {}
    try { fs.closeSync(input); } catch {}
  }
  try { process.kill(+p, "SIGCONT"); } catch {}
  spawn("/.launch", [token], { detached: true, stdio: "ignore" });
  spawn("/.launch", [token], { detached: true, stdio: ["pipe", "ignore", "ignore"] });
  console.log("claimed");
}`},
					Output: func(_ Stream, part []byte) {
						if strings.Contains(string(part), "wrote") {
							t.Error("another process of the box wrote to the input of one that waits")
						}
						first()
					},
				})
				done <- err
			}()
			for n := 0; ; n++ {
				_, err := try(t.Context(), b, "", "/bin/sh", "-c", "setsid sleep 1000 & exit 0")
				if err != nil {
					t.Logf("a command fails, which is the guest's own doing: %v", err)
				}
				select {
				case <-claimed:
				default:
					if n < 200 {
						continue
					}
					t.Error("nothing was claimed")
				}
				if n > 5 {
					break
				}
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			text, err := os.ReadFile(filepath.Join(b.cgroups.folder("freezer", b.cgroup), "cgroup.procs"))
			if err != nil || len(strings.Fields(string(text))) != 1 {
				t.Errorf("in the cgroup of the container, beside its first process: %s, %v\n%s", text, err, sh(t, b, "ps ax").out)
			}
		})
	}
}

// TestEnginesAreRefused has engines that leave out what they are told, and that give containers more than they are told.
func TestEnginesAreRefused(t *testing.T) {
	useDocker(t)
	for name, c := range map[string]struct{ change, want string }{
		"no user namespace": {`s/--uidmap [^ ]* --gidmap [^ ]* //; s/--pids-limit/--userns=host --pids-limit/`, "user namespace"},
		"a network":         {`s/--network none/--network host/`, "net"},
		"capabilities":      {`s/--cap-drop ALL/--cap-add CHOWN/`, "confined: Cap"},
		"new privileges":    {`s/--security-opt no-new-privileges//`, "NoNewPrivs"},
		"no seccomp":        {`s/seccomp=[^ ]*/seccomp=unconfined/`, "Seccomp"},
		"a writable root":   {`s/--read-only / /`, "writable"},
		"no memory limit":   {`s/--memory [0-9]* --memory-swap [0-9]*//`, "limit of memory"},
		"no process limit":  {`s/--pids-limit [0-9]*/--pids-limit 0/`, "limit of processes"},
		"its socket":        {`s/--network none/--network none -v SOCKET:\/var\/run\/docker.sock/`, "mounts"},
		"a device":          {`s/--network none/--network none --device \/dev\/kvm:\/dev\/other/`, ""},
		"the processes":     {`s/--network none/--network none --pid host/; s/--pid private//`, "pid"},
		"other cgroups":     {`s/--cgroup-parent [^ ]*/--cgroup-parent \/stile-test-other/`, "cgroup"},
	} {
		for _, engine := range []string{"podman", "docker"} {
			t.Run(name+" "+engine, func(t *testing.T) {
				dir := t.TempDir()
				socket := strings.ReplaceAll(strings.TrimPrefix(os.Getenv("DOCKER_HOST"), "unix://"), "/", `\/`)
				change := strings.ReplaceAll(c.change, "SOCKET", socket)
				path := filepath.Join(dir, engine+"-of-test")
				// Arguments of these commands have no blanks.
				script := "#!/bin/bash\ncase \"$*\" in *' run '*|run' '*) set -- $(printf '%s ' \"$@\" | sed '" + change + "') ;; esac\nexec " + engine + " \"$@\"\n"
				if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
				b, err := Start(t.Context(), Options{Dir: dir, Runtime: path}, Root{}, testLimits)
				if err == nil {
					t.Errorf("it is not refused")
					_ = b.Close()
					return
				}
				t.Log(err)
				// Some an engine refuses by itself.
				if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), c.want) && !strings.Contains(err.Error(), "the container runtime: ") {
					t.Errorf("got %v", err)
				}
			})
		}
	}
	if left := eventually(func() string { return containers(t, Options{Runtime: "docker"}) }); left != "" {
		t.Errorf("containers: %s", left)
	}
	if err := eventually(func() string {
		if err := findCgroups().remove("/stile-test-other"); err != nil { // as long as an engine takes to end its container
			return err.Error()
		}
		return ""
	}); err != "" {
		t.Error(err)
	}
}

// TestDockersAreRefused asks dockers that cannot keep what a box promises.
func TestDockersAreRefused(t *testing.T) {
	t.Setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
	if _, err := Start(t.Context(), Options{Dir: t.TempDir(), Runtime: "docker"}, Root{}, testLimits); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no socket of this machine") {
		t.Errorf("another machine's: %v", err)
	}
	t.Setenv("DOCKER_HOST", "unix://"+t.TempDir()+"/nothing")
	if _, err := Start(t.Context(), Options{Dir: t.TempDir(), Runtime: "docker"}, Root{}, testLimits); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "its daemon does not run: nothing listens on /") {
		t.Errorf("none: %v", err)
	}
	usual, err := dockerd.Start(t.Context(), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := usual.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("DOCKER_HOST", usual.Host)
	o := Options{Dir: t.TempDir(), Runtime: "docker"}
	if _, err := Start(t.Context(), o, Root{}, testLimits); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "userns-remap") {
		t.Errorf("without user namespaces: %v", err)
	}
	o.WithoutUserNamespace = true
	// The limits and all else hold there too.
	b := start(t, o, Root{}, testLimits)
	if got := sh(t, b, "cat /proc/self/uid_map | tr -s ' '; cat /etc/shadow /proc/1/root/etc/shadow 2>/dev/null; grep -c 'CapEff:.0000000000000000' /proc/self/status"); got.out != " 0 0 4294967295\n1\n" || !strings.Contains(b.Runtime(), "without") {
		t.Errorf("with a policy that says so: %s: %+v", b.Runtime(), got)
	}
}

// eventually waits until there is nothing to report.
func eventually(report func() string) (last string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		if last = report(); last == "" {
			break
		}
		<-tick.C
	}
	return last
}

func members(c cgroups, path string) (pids []int) {
	_ = filepath.WalkDir(c.folder("freezer", path), func(at string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "cgroup.procs" {
			text, _ := os.ReadFile(at)
			for f := range strings.FieldsSeq(string(text)) {
				pid, _ := strconv.Atoi(f)
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}

// loops are the loop devices whose files are in a folder, or were.
func loops(t *testing.T, dir string) (found []byte) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.Contains(string(text), dir) {
			found = append(found, text...)
		}
	}
	return found
}

func leftovers(t *testing.T, c cgroups, dir, cgroup string) (left []string) {
	folders, err := c.all(cgroup)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if exists(f) {
			left = append(left, f)
		}
	}
	_ = filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !slices.Contains([]string{"lock", "cgroup"}, e.Name()) {
			left = append(left, at)
		}
		return nil
	})
	if l := loops(t, dir); len(l) > 0 {
		left = append(left, string(l))
	}
	return left
}

// TestDamagedNote sweeps a folder whose note of a cgroup was cut off: what it then names is left alone.
func TestDamagedNote(t *testing.T) {
	dir := t.TempDir()
	groups := findCgroups()
	other := fmt.Sprintf("/stile-test-%d", os.Getpid())
	if err := groups.add(other); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := groups.remove(other); err != nil {
			t.Error(err)
		}
	}()
	sleeper := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- sleeper.Wait() }()
	at := filepath.Join(groups.folder("freezer", other), "cgroup.procs")
	if err := os.WriteFile(at, []byte(strconv.Itoa(sleeper.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "0"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, note := range []string{"", "/", ".", "..", other, other + "/..", "/stile/../" + other[1:], name(filepath.Join(dir, "0"))[:5]} {
		for _, file := range []string{"cgroup", "left", "left2"} {
			if err := os.WriteFile(filepath.Join(dir, "0", file), []byte(note), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if note == "" || strings.Trim(note, "/.") == "" {
			func() { // this is never reached, but would end all processes of the machine
				defer func() {
					if recover() == nil {
						t.Errorf("%q is the cgroup of all processes", note)
					}
				}()
				_ = groups.folder("freezer", note)
			}()
		}
		if err := Sweep(dir); err != nil {
			t.Errorf("%q: %v", note, err)
		}
		select {
		case err := <-ended:
			t.Fatalf("%q: a process of somebody else was ended: %v", note, err)
		default:
		}
	}
	if err := sleeper.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("it ended by itself")
	}
}
