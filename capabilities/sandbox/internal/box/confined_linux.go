package box

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// confined reads back how the first process of a box is kept from the machine.
func confined(pid int, user bool) error {
	at := fmt.Sprintf("/proc/%d/", pid)
	status, err := os.ReadFile(at + "status")
	if err != nil {
		return err
	}
	want := map[string]string{"NoNewPrivs": "1", "Seccomp": "2"}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		want[set] = "0000000000000000"
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		if w, ok := want[name]; ok && w == strings.TrimSpace(value) {
			delete(want, name)
		}
	}
	var errs []error
	for name := range want {
		errs = append(errs, fmt.Errorf("the container's processes are not confined: %s", name))
	}
	namespaces := []string{"pid", "ipc", "uts", "mnt", "net", "cgroup"}
	if user {
		namespaces = append(namespaces, "user")
	}
	for _, n := range namespaces {
		own, err := os.Readlink("/proc/self/ns/" + n)
		inside, err2 := os.Readlink(at + "ns/" + n)
		if err = errors.Join(err, err2); err != nil || own == inside {
			errs = append(errs, errors.Join(err, fmt.Errorf("the container has no namespace of its own: %s", n)))
		}
	}
	for file, header := range map[string]int{"net/route": 1, "net/ipv6_route": 0} {
		text, err := os.ReadFile(at + file)
		if ignoreMissing(err) != nil {
			errs = append(errs, err)
		}
		line := 0
		for route := range strings.Lines(string(text)) {
			if line++; line > header && !strings.HasSuffix(strings.TrimSpace(route), " lo") {
				errs = append(errs, errors.New("the container has a network"))
				break
			}
		}
	}
	return errors.Join(errs...)
}
