package chromium

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
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

// processorOf returns the processor time of a process and of all that it started, also of those that have ended.
func processorOf(pid int) time.Duration {
	const perTick = time.Second / 100 // USER_HZ, which is the same on all platforms that have Chromium
	var ticks int64
	for _, p := range below(pid) {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p)) // it may have ended
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		const user, end = 11, 15 // utime, stime, cutime, cstime
		if len(fields) < end {
			continue
		}
		for _, f := range fields[user:end] {
			n, _ := strconv.ParseInt(f, 10, 64)
			ticks += n
		}
	}
	return time.Duration(ticks) * perTick
}

// lowPriority makes a process, and all that it started, yield to others, or no longer. Where the system groups processes by session, the
// group yields, so that all of it can change back. Elsewhere the processes of pages yield for good.
func lowPriority(pid int, low bool) {
	const nice = 19
	group := "0"
	if low {
		group = strconv.Itoa(nice)
	}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(group), 0) // there may be none
	if !low {
		return
	}
	_, pages := memoryOf(pid)
	for _, p := range pages {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", p.pid))
		for _, name := range threads {
			if thread, err := strconv.Atoi(filepath.Base(name)); err == nil {
				_ = unix.Setpriority(unix.PRIO_PROCESS, thread, nice) // it may have ended
			}
		}
	}
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
