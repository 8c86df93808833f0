package contenders

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processesOf finds the processes with a mark in the name of their cgroup or in their command line: those of containers, and their
// helpers.
func processesOf(mark string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	for _, dir := range all {
		pid, _ := strconv.Atoi(filepath.Base(dir)) // it is a number
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) || pid == os.Getpid() {
			continue // it has ended
		}
		cgroup, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if strings.Contains(string(cgroup)+string(command), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// distinct leaves out processes that share all their memory with another, as some of gVisor's do, because it would count twice. It
// recognises them by equal mappings at random addresses.
func distinct(pids []int) []int {
	seen := map[string]bool{}
	return slices.DeleteFunc(pids, func(pid int) bool {
		maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		again := len(maps) > 0 && seen[string(maps)]
		seen[string(maps)] = true
		return again
	})
}

// cgroupsOf finds the cgroups with a mark in their path, the inner ones first.
func cgroupsOf(mark string) (paths []string) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.Contains(path, mark) {
			paths = append(paths, path)
		}
		return nil // a cgroup that has gone meanwhile does not count
	})
	slices.Reverse(paths)
	return paths
}

// mountsOf finds the mounts with a mark in their path or source, the last ones first.
func mountsOf(mark string) (paths []string) {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.Contains(line, mark) {
			paths = append(paths, fields[4])
		}
	}
	slices.Reverse(paths)
	return paths
}

// clean removes folders, with the mounts and cgroups of a mark. Processes get a moment to end before they are killed, such as those
// of a container whose caller gave up during its start.
func clean(mark string, folders ...string) error {
	pids := processesOf(mark)
	for start := time.Now(); len(pids) > 0; pids = processesOf(mark) {
		waited := time.Since(start)
		if waited > 10*time.Second {
			return fmt.Errorf("processes of %s are left: %v", mark, pids)
		}
		for _, pid := range pids {
			if waited > time.Second {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, path := range mountsOf(mark) {
		if err := syscall.Unmount(path, 0); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err) // what is mounted there must not be removed
		}
	}
	var errs []error
	for _, path := range cgroupsOf(mark) {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, folder := range folders {
		errs = append(errs, os.RemoveAll(folder))
	}
	return errors.Join(errs...)
}
