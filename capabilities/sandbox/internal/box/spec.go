package box

import (
	_ "embed"
	"encoding/json"
	"strings"
)

// The parts of the OCI runtime specification 1.0.2 that a box uses.
type (
	spec struct {
		Version  string  `json:"ociVersion"`
		Process  process `json:"process"`
		Root     root    `json:"root"`
		Hostname string  `json:"hostname"`
		Mounts   []mount `json:"mounts"`
		Linux    linux   `json:"linux"`
	}
	process struct {
		Terminal        bool                `json:"terminal"`
		User            user                `json:"user"`
		Args            []string            `json:"args"`
		Env             []string            `json:"env"`
		Cwd             string              `json:"cwd"`
		Capabilities    map[string][]string `json:"capabilities"`
		Rlimits         []rlimit            `json:"rlimits"`
		NoNewPrivileges bool                `json:"noNewPrivileges"`
	}
	user struct {
		UID uint32 `json:"uid"`
		GID uint32 `json:"gid"`
	}
	rlimit struct {
		Type string `json:"type"`
		Hard uint64 `json:"hard"`
		Soft uint64 `json:"soft"`
	}
	root struct {
		Path     string `json:"path"`
		Readonly bool   `json:"readonly"`
	}
	mount struct {
		Destination string   `json:"destination"`
		Type        string   `json:"type"`
		Source      string   `json:"source"`
		Options     []string `json:"options,omitempty"`
	}
	linux struct {
		CgroupsPath       string          `json:"cgroupsPath"`
		UIDMappings       []mapping       `json:"uidMappings,omitempty"`
		GIDMappings       []mapping       `json:"gidMappings,omitempty"`
		Namespaces        []namespace     `json:"namespaces"`
		Resources         resources       `json:"resources"`
		Seccomp           json.RawMessage `json:"seccomp"`
		MaskedPaths       []string        `json:"maskedPaths"`
		ReadonlyPaths     []string        `json:"readonlyPaths"`
		RootfsPropagation string          `json:"rootfsPropagation"`
	}
	mapping struct {
		ContainerID uint32 `json:"containerID"`
		HostID      uint32 `json:"hostID"`
		Size        uint32 `json:"size"`
	}
	namespace struct {
		Type string `json:"type"`
	}
	resources struct {
		Devices []device `json:"devices"`
		Memory  memory   `json:"memory"`
		CPU     cpu      `json:"cpu"`
		Pids    pids     `json:"pids"`
	}
	device struct {
		Allow  bool   `json:"allow"`
		Access string `json:"access"`
	}
	memory struct {
		Limit int64 `json:"limit"`
		Swap  int64 `json:"swap"`
	}
	cpu struct {
		Quota  int64  `json:"quota"`
		Period uint64 `json:"period"`
	}
	pids struct {
		Limit int64 `json:"limit"`
	}
)

// seccomp is the list of system calls that containers commonly allow, without those that need a capability: a box has none. It is the
// list of github.com/containers/common v0.50.1, pkg/seccomp/seccomp.json, reduced, and without io_uring, keyrings and bpf.
//
//go:embed seccomp.json
var seccomp []byte

// maskedPaths show nothing, and readonlyPaths cannot be written: the lists that containers commonly have.
var (
	maskedPaths = []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/latency_stats", "/proc/sched_debug",
		"/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/proc/kallsyms", "/proc/kmsg", "/proc/config.gz", "/proc/pagetypeinfo",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

const (
	searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	// initPath is where the first process of a box is.
	initPath  = "/dev/init"
	cpuPeriod = 100_000 // microseconds
	// rangeSize is how many user ids a box has.
	rangeSize = 1 << 16
)

// noCapabilities are the five sets of a process, all empty.
var noCapabilities = map[string][]string{"bounding": {}, "effective": {}, "inheritable": {}, "permitted": {}, "ambient": {}}

// newProcess describes a process of a box.
func (r Root) newProcess(args, env []string, dir string) process {
	return process{
		Args: args, Cwd: dir, Capabilities: noCapabilities, NoNewPrivileges: true,
		Env:     variables([]string{searchPath, "HOME=" + Home, "TMPDIR=/tmp", "LANG=C.UTF-8"}, r.Env, env),
		Rlimits: rlimits(),
	}
}

// variables joins lists of NAME=VALUE. The last value of a name counts, and each name is there once.
func variables(lists ...[]string) []string {
	var all []string
	at := map[string]int{}
	for _, list := range lists {
		for _, v := range list {
			name, _, _ := strings.Cut(v, "=")
			if i, twice := at[name]; twice {
				all[i] = v
				continue
			}
			at[name] = len(all)
			all = append(all, v)
		}
	}
	return all
}

// places are the folders that a box can write, and the folders of its file system that are there.
var places = []struct{ destination, source string }{{Work, "work"}, {Home, "home"}, {"/tmp", "tmp"}, {"/var/tmp", "vartmp"}, {"/run", "run"}}

// newSpec describes a box: rootfs is its root, programs are folders of this machine, files is its file system, and init its first program.
func newSpec(r Root, rootfs, files, init, cgroup string, first uint32, l Limits, programs []string) spec {
	s := spec{
		Version: "1.0.2", Process: r.newProcess([]string{initPath}, nil, "/"), Root: root{rootfs, true}, Hostname: "sandbox",
		Mounts: []mount{
			{"/proc", "proc", "proc", []string{"nosuid", "noexec", "nodev"}},
			{"/dev", "tmpfs", "tmpfs", []string{"nosuid", "strictatime", "mode=755", "size=64k", "nr_inodes=64"}},
			{"/dev/pts", "devpts", "devpts", []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}},
			{"/dev/shm", "tmpfs", "shm", []string{"nosuid", "noexec", "nodev", "mode=1777", "size=64m", "nr_inodes=4096"}},
			{initPath, "bind", init, []string{"bind", "ro", "nosuid", "nodev"}},
		},
		Linux: linux{
			CgroupsPath: cgroup, Seccomp: seccomp, MaskedPaths: maskedPaths, ReadonlyPaths: readonlyPaths, RootfsPropagation: "private",
			Resources: resources{
				Devices: []device{{Allow: false, Access: "rwm"}}, Memory: memory{l.Memory, l.Memory},
				CPU: cpu{int64(l.CPU * cpuPeriod), cpuPeriod}, Pids: pids{l.Processes},
			},
		},
	}
	for _, kind := range []string{"pid", "ipc", "uts", "mount", "network", "cgroup"} {
		s.Linux.Namespaces = append(s.Linux.Namespaces, namespace{kind})
	}
	if first != 0 {
		s.Linux.Namespaces = append(s.Linux.Namespaces, namespace{"user"})
		s.Linux.UIDMappings = []mapping{{0, first, rangeSize}}
		s.Linux.GIDMappings = s.Linux.UIDMappings
	}
	for _, p := range programs {
		s.Mounts = append(s.Mounts, mount{p, "bind", p, []string{"bind", "ro", "nosuid", "nodev"}})
	}
	for _, p := range places {
		s.Mounts = append(s.Mounts, mount{p.destination, "bind", files + "/" + p.source, []string{"bind", "rw", "nosuid", "nodev"}})
	}
	return s
}
