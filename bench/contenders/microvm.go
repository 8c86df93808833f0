package contenders

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/stilehost/stile/bench"
)

// microVM is Node.js in a virtual machine. It is never available: it says either why the machine cannot run one, or that there is no
// guest for it yet.
var microVM = &bench.Contender{
	Name: "microvm", Title: "Node.js in a microVM (QEMU)", Boundary: "a virtual machine", Limits: "memory, no network",
	Level: bench.NewIsolate, Tasks: []bench.Task{bench.Compute},
	Prepare: func(context.Context, *bench.Workbench, bench.Task) (bench.Runner, error) {
		info, err := os.ReadFile("/proc/cpuinfo")
		if err != nil {
			return nil, err
		}
		if flags := strings.Fields(string(info)); !slices.Contains(flags, "vmx") && !slices.Contains(flags, "svm") {
			return nil, bench.Unavailable("the processor offers no virtualisation here (neither vmx nor svm)")
		}
		f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
		if err != nil {
			return nil, bench.Unavailable("KVM cannot be used: %v", err)
		}
		_ = f.Close()
		if _, err := bench.Find("qemu-system-x86_64", "apt-get install qemu-system-x86"); err != nil {
			return nil, err
		}
		return nil, bench.Unavailable("this suite has no kernel and no root file system for it yet")
	},
}
