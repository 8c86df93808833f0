package contenders

import (
	"encoding/json"
	"path/filepath"

	"github.com/stilehost/stile/bench"
)

// The limits of all containers.
const (
	containerMemory = 256 << 20
	containerPIDs   = 256
)

// writeBundle writes the OCI bundle of a container, and returns its folder.
func (s *site) writeBundle(name string, p plan) (string, error) {
	type object = map[string]any
	mounts := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755", "size=64k"}},
		{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "nodev", "size=64m"}},
	}
	if p.files != "" {
		mounts = append(mounts, object{"destination": filesDir, "type": "bind", "source": p.files, "options": []string{"rbind", "rw"}})
	}
	config, err := json.Marshal(object{
		"ociVersion": "1.0.2",
		"process": object{
			"args": p.command, "cwd": "/", "env": []string{"PATH=/usr/bin"}, "noNewPrivileges": true,
			"user": object{"uid": 0, "gid": 0}, "capabilities": object{},
		},
		"root":   object{"path": s.root(), "readonly": true},
		"mounts": mounts,
		"linux": object{
			"cgroupsPath": "/" + s.mark() + "/" + name,
			"resources":   object{"memory": object{"limit": containerMemory}, "pids": object{"limit": containerPIDs}},
			"namespaces":  []object{{"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}},
		},
	})
	if err != nil {
		return "", err
	}
	dir := filepath.Join(s.dir, "bundles", name)
	return dir, bench.WriteFiles(dir, map[string]string{"config.json": string(config)})
}
