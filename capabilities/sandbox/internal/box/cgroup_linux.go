package box

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// cgroups are the hierarchies of this machine.
type cgroups struct {
	root    string
	unified bool // version 2
}

func findCgroups() cgroups {
	_, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers"))
	return cgroups{cgroupRoot, err == nil}
}

// String names the version.
func (c cgroups) String() string {
	if c.unified {
		return "cgroups of version 2"
	}
	return "cgroups of version 1"
}

// ofUser says what cgroups are to a user other than root.
func (c cgroups) ofUser() string {
	if !c.unified {
		return c.String() + " limit nothing for other users"
	}
	own := ""
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			own = filepath.Join(c.root, path)
		}
	}
	controllers, _ := os.ReadFile(filepath.Join(own, "cgroup.controllers"))
	has := strings.Fields(string(controllers))
	if unix.Access(filepath.Join(own, "cgroup.subtree_control"), unix.W_OK) != nil || !slices.Contains(has, "memory") || !slices.Contains(has, "pids") {
		return "its cgroup, of version 2, is not delegated to this user with memory and pids"
	}
	return "its cgroup, of version 2, is delegated to this user"
}

// folder is a cgroup, for one controller. The path is never that of all processes.
func (c cgroups) folder(controller, path string) string {
	if len(strings.Trim(filepath.Clean(path), "/.")) == 0 {
		panic("box: the root cgroup")
	}
	if c.unified {
		return filepath.Join(c.root, path)
	}
	return filepath.Join(c.root, controller, path)
}

// has reports whether the machine has a controller.
func (c cgroups) has(controller string) bool {
	if !c.unified {
		_, err := os.Stat(filepath.Join(c.root, controller, "cgroup.procs"))
		return err == nil
	}
	if controller == "freezer" {
		return true
	}
	text, _ := os.ReadFile(filepath.Join(c.root, "cgroup.controllers"))
	return slices.Contains(strings.Fields(string(text)), controller)
}

// verify reads the limits back.
func (c cgroups) verify(path string, l Limits) []Check {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	quota := int64(l.CPU * cpuPeriod)
	want := []struct{ name, controller, file1, value1, file2, value2 string }{
		{"memory", "memory", "memory.limit_in_bytes", number(l.Memory &^ 4095), "memory.max", number(l.Memory &^ 4095)},
		{"swap", "memory", "memory.memsw.limit_in_bytes", number(l.Memory &^ 4095), "memory.swap.max", "0"},
		{"processes", "pids", "pids.max", number(l.Processes), "pids.max", number(l.Processes)},
		{"cpu", "cpu", "cpu.cfs_quota_us", number(quota), "cpu.max", fmt.Sprintf("%d %d", quota, cpuPeriod)},
	}
	checks := make([]Check, 0, len(want))
	for _, w := range want {
		file, value := w.file1, w.value1
		if c.unified {
			file, value = w.file2, w.value2
		}
		text, err := os.ReadFile(filepath.Join(c.folder(w.controller, path), file))
		have := strings.TrimSpace(string(text))
		check := Check{Name: w.name, OK: err == nil && have == value, Detail: have}
		if err != nil {
			check.Detail = "not there: " + reason(err)
		}
		if w.name == "swap" && err != nil && errors.Is(err, fs.ErrNotExist) {
			check.OK, check.Detail = noSwap(), "this kernel does not limit swap"
			if check.OK {
				check.Detail = "this machine has no swap"
			}
		}
		checks = append(checks, check)
	}
	return checks
}

func noSwap() bool {
	text, err := os.ReadFile("/proc/swaps")
	return err == nil && strings.Count(string(text), "\n") <= 1
}

// forbidSwap has a cgroup of version 2 use no swap: docker takes "no more with swap than without" for no limit there.
func (c cgroups) forbidSwap(path string) error {
	if !c.unified {
		return nil
	}
	file, err := os.OpenFile(filepath.Join(c.folder("memory", path), "memory.swap.max"), os.O_WRONLY, 0)
	if err != nil {
		return ignoreMissing(err) // this kernel does not limit swap
	}
	_, err = file.WriteString("0")
	return errors.Join(err, file.Close())
}

// freeze stops all processes of a cgroup and of those below it, and returns once they stand.
func (c cgroups) freeze(path string) error {
	if c.unified {
		return c.await(path, "cgroup.freeze", "1", "cgroup.events", func(text string) bool { return strings.Contains(text, "frozen 1") })
	}
	return c.await(path, "freezer.state", "FROZEN", "freezer.state", func(text string) bool { return strings.TrimSpace(text) == "FROZEN" })
}

func (c cgroups) thaw(path string) error {
	if c.unified {
		return os.WriteFile(filepath.Join(c.folder("", path), "cgroup.freeze"), []byte("0"), 0)
	}
	return os.WriteFile(filepath.Join(c.folder("freezer", path), "freezer.state"), []byte("THAWED"), 0)
}

func (c cgroups) await(path, file, value, status string, is func(string) bool) error {
	folder := c.folder("freezer", path)
	return until("processes could not be stopped", func() (bool, error) {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(value), 0); err != nil {
			return false, err
		}
		text, err := os.ReadFile(filepath.Join(folder, status))
		return is(string(text)), err
	})
}

// until waits for what the kernel does soon, and says nothing about. The error has the problem if it takes longer than parts of a box have.
func until(problem string, done func() (bool, error)) error {
	for end := time.Now().Add(closing); ; time.Sleep(time.Millisecond) {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s within %v", problem, closing)
		}
	}
}

// clear kills until nothing is in a cgroup and below it.
func (c cgroups) clear(path string) error {
	return until("processes did not end", func() (bool, error) {
		if c.empty(path) {
			return true, nil
		}
		return false, c.kill(path)
	})
}

// kill ends all processes of a cgroup and of those below it. They may still be dying when it returns.
func (c cgroups) kill(path string) error {
	folder := c.folder("freezer", path)
	if c.unified {
		err := os.WriteFile(filepath.Join(folder, "cgroup.kill"), []byte("1"), 0)
		if err == nil || errors.Is(err, fs.ErrNotExist) && !exists(folder) {
			return nil
		}
	}
	if !exists(folder) {
		return nil
	}
	_ = c.freeze(path) // so that nothing is started meanwhile; those that cannot be frozen are killed too
	err := filepath.WalkDir(folder, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() != "cgroup.procs" {
			return nil //nolint:nilerr // a cgroup that is gone has no processes
		}
		text, _ := os.ReadFile(at)
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		return nil
	})
	return errors.Join(err, ignoreMissing(c.thaw(path)))
}

// empty reports whether no process is in a cgroup or below it.
func (c cgroups) empty(path string) bool {
	empty := true
	_ = filepath.WalkDir(c.folder("freezer", path), func(at string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() == "cgroup.procs" {
			text, _ := os.ReadFile(at)
			empty = empty && len(strings.TrimSpace(string(text))) == 0
		}
		return nil
	})
	return empty
}

// all returns a cgroup in every hierarchy.
func (c cgroups) all(path string) ([]string, error) {
	if c.unified {
		return []string{c.folder("", path)}, nil
	}
	hierarchies, err := os.ReadDir(c.root)
	folders := make([]string, 0, len(hierarchies))
	for _, h := range hierarchies {
		if h.IsDir() { // the others are links
			folders = append(folders, filepath.Join(c.root, h.Name(), path))
		}
	}
	return folders, err
}

// add makes a cgroup below one of a box, in every hierarchy that has that one. A runtime leaves a process outside of the box's limits in
// each hierarchy where the cgroup that it should join is missing.
func (c cgroups) add(path string) error {
	folders, err := c.all(path)
	for _, folder := range folders {
		if err == nil && exists(filepath.Dir(folder)) {
			err = errors.Join(os.Mkdir(folder, 0o755), inheritCPUs(folder))
		}
	}
	return err
}

// adopt moves the process with a token in its command line from one cgroup into another, in every hierarchy, and returns its number. If
// others claim the token, which they can know only once that process is there, they are moved too.
func (c cgroups) adopt(from, to, token string) (pid int, err error) {
	folders, err := c.all(to)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(filepath.Join(c.folder("freezer", from), "cgroup.procs"))
	if err != nil {
		return 0, err
	}
	for field := range strings.FieldsSeq(string(text)) {
		if !claims(field, token) {
			continue
		}
		for _, folder := range folders {
			if err := os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte(field), 0); ignoreMissing(err) != nil && !errors.Is(err, unix.ESRCH) {
				return 0, err
			}
		}
		pid, _ = strconv.Atoi(field)
	}
	if pid == 0 {
		return 0, errors.New("the process of a command is gone")
	}
	return pid, nil
}

// claims reports whether a token is at the beginning of a process's command line.
func claims(pid, token string) bool {
	file, err := os.Open("/proc/" + pid + "/cmdline")
	if err != nil {
		return false
	}
	defer file.Close()
	start := make([]byte, len(engineLaunch)+1+len(token))
	n, err := io.ReadFull(file, start)
	return err == nil && string(start[:n]) == engineLaunch+"\x00"+token
}

// inheritCPUs sets the processors of a cgroup of version 1, which has none at first and then takes no process.
func inheritCPUs(folder string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(folder), file))
		if err == nil && len(strings.TrimSpace(string(text))) > 0 {
			err = os.WriteFile(filepath.Join(folder, file), text, 0)
		}
		if ignoreMissing(err) != nil {
			return err
		}
	}
	return nil
}

// remove deletes a cgroup in every hierarchy, with those below it. They must be empty.
func (c cgroups) remove(path string) error {
	folders, err := c.all(path)
	errs := []error{err}
	for _, folder := range folders {
		errs = append(errs, removeTree(folder))
	}
	return errors.Join(errs...)
}

// removeTree deletes the folders of a cgroup. Their files cannot be deleted.
func removeTree(root string) error {
	entries, err := os.ReadDir(root)
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, removeTree(filepath.Join(root, e.Name())))
		}
	}
	return ignoreMissing(errors.Join(err, unix.Rmdir(root)))
}

// processes counts those of a cgroup and of those below it, with their threads, and with those that have ended but not let go of everything yet.
// It is 0 where that is not known.
func (c cgroups) processes(path string) int {
	text, err := os.ReadFile(filepath.Join(c.folder("pids", path), "pids.current"))
	n, err2 := strconv.Atoi(strings.TrimSpace(string(text)))
	if errors.Join(err, err2) != nil {
		return 0
	}
	return n
}

// memoryKills counts the processes that were ended because a cgroup had too much memory.
func (c cgroups) memoryKills(path string) int64 {
	file := "memory.oom_control"
	if c.unified {
		file = "memory.events"
	}
	text, _ := os.ReadFile(filepath.Join(c.folder("memory", path), file))
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			kills, _ := strconv.ParseInt(n, 10, 64)
			return kills
		}
	}
	return 0
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
