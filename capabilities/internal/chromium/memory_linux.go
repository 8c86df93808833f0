package chromium

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// memoryOf returns how many bytes a process and all that it started have, besides what they share, and those of them that run pages.
func memoryOf(pid int) (total int64, pages []pageProcess) {
	for _, p := range below(pid) {
		bytes := privateBytes(p)
		total += bytes
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p)) // it may have ended
		if strings.Contains(string(line), "--type=renderer") {
			pages = append(pages, pageProcess{p, bytes})
		}
	}
	return total, pages
}

// below returns a process and all that it started.
func below(pid int) []int {
	all := []int{pid}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range lists {
		list, _ := os.ReadFile(name)
		for child := range strings.FieldsSeq(string(list)) {
			if n, err := strconv.Atoi(child); err == nil {
				all = append(all, below(n)...)
			}
		}
	}
	return all
}

// proportional returns how many bytes a process and all that it started take, with their parts of what they share.
func proportional(pid int) (total int64) {
	for _, p := range below(pid) {
		rollup, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p)) // it may have ended
		_, rest, _ := strings.Cut(string(rollup), "\nPss:")
		var kib int64
		_, _ = fmt.Sscan(rest, &kib)
		total += kib << 10
	}
	return total
}

func privateBytes(pid int) int64 {
	statm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := strings.Fields(string(statm))
	if len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(fields[1], 10, 64)
	shared, _ := strconv.ParseInt(fields[2], 10, 64)
	return max(0, resident-shared) * int64(os.Getpagesize())
}

// sandboxed returns an error unless every process of pages below pid is in Chromium's own sandbox: another user namespace, and a filter of
// system calls.
func sandboxed(pid int) error {
	_, pages := memoryOf(pid)
	if len(pages) == 0 {
		return errors.New("it has no process for pages")
	}
	outer, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", pid))
	if err != nil {
		return err
	}
	for _, p := range pages {
		inner, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", p.pid))
		if err != nil {
			return err
		}
		if inner == outer {
			return errors.New("the system lets it make no user namespaces; see kernel.unprivileged_userns_clone and user.max_user_namespaces")
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
		if err != nil {
			return err
		}
		if !strings.Contains(string(status), "\nSeccomp:\t2\n") {
			return errors.New("system calls of pages are not filtered")
		}
	}
	return nil
}
