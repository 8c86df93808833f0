package measure

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine is where and when the figures were taken.
type Machine struct {
	Time       time.Time `json:"time"`
	Revision   string    `json:"revision"`
	System     string    `json:"system"`
	CPU        string    `json:"cpu"`
	Processors int       `json:"processors"`
	MemoryMiB  int       `json:"memory_mib"`
	Go         string    `json:"go"`
	LoadBefore string    `json:"load_before"`
	LoadAfter  string    `json:"load_after"`
}

// DescribeMachine describes this machine.
func DescribeMachine(ctx context.Context) Machine {
	m := Machine{
		Time: time.Now().UTC().Truncate(time.Second), Processors: runtime.NumCPU(), Go: runtime.Version(),
		System: runtime.GOOS + "/" + runtime.GOARCH, LoadBefore: Load(),
	}
	if out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output(); err == nil {
		m.Revision = strings.TrimSpace(string(out))
	}
	if total, err := KiB("/proc/meminfo", "MemTotal"); err == nil {
		m.MemoryMiB = int(total) / 1024
	}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(info), "model name")
		line, _, _ := strings.Cut(rest, "\n")
		m.CPU = strings.Trim(line, "\t :")
	}
	return m
}

// Load is the load average over one, five and fifteen minutes, if the kernel reports it.
func Load() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(content))[:3], " ")
}

// KiB reads a field of a file that the kernel writes as "Field: 123 kB".
func KiB(file, field string) (float64, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut("\n"+string(content), "\n"+field+":")
	var n float64
	if _, err := fmt.Sscan(rest, &n); !ok || err != nil {
		return 0, fmt.Errorf("%s has no %s", file, field)
	}
	return n, nil
}

// MemoryOf is the memory of a process, in KiB.
type MemoryOf struct{ Private, Proportional float64 }

// Memory is the memory that only this process has, and that with its share of what it shares.
func Memory(pid int) (m MemoryOf, err error) {
	file := fmt.Sprintf("/proc/%d/smaps_rollup", pid)
	for field, to := range map[string]*float64{"Private_Dirty": &m.Private, "Private_Clean": &m.Private, "Pss": &m.Proportional} {
		n, err := KiB(file, field)
		if err != nil {
			return m, err
		}
		*to += n
	}
	return m, nil
}

// Family returns a process and those that it started, and those that they started, as far as they still run.
func Family(pid int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(content), ") ") // the name before it may contain spaces
		var state string
		var parent int
		if _, err := fmt.Sscan(rest, &state, &parent); err != nil {
			return nil, fmt.Errorf("read the parent of process %d: %w", id, err)
		}
		children[parent] = append(children[parent], id)
	}
	family := []int{pid}
	for i := 0; i < len(family); i++ {
		family = append(family, children[family[i]]...)
	}
	return family, nil
}

// BusyCPU is how long the machine's processors have worked since it started, in steps of 10 ms.
func BusyCPU() (time.Duration, error) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	var user, nice, system, idle, iowait, irq, softirq, steal int64
	if _, err := fmt.Sscanf(string(content), "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal); err != nil {
		return 0, fmt.Errorf("read /proc/stat: %w", err)
	}
	return time.Duration(user+nice+system+irq+softirq) * 10 * time.Millisecond, nil
}

// CPU is the processor time that a process has used, in steps of 10 ms.
func CPU(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(content), ") ") // the name before it may contain spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("read the times of process %d: %q", pid, content)
	}
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, fmt.Errorf("read the times of process %d: %w", pid, err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}
