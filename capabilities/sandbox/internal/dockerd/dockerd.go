// Package dockerd runs a docker of its own for tests: with user namespaces, without a network, and apart from a docker of the machine.
package dockerd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Server is a running dockerd. Its maker stops it.
type Server struct {
	// Host is what DOCKER_HOST names.
	Host string
	dir  string
	cmd  *exec.Cmd
	said string
	done chan struct{}
}

// Start starts dockerd and waits until it answers. It needs root, and Debian's package docker.io. Without users, containers run as the users
// of this machine, as a docker that nobody configured does. more is added to its configuration.
func Start(ctx context.Context, users bool, more map[string]any) (*Server, error) {
	dir, err := os.MkdirTemp("", "dockerd")
	if err != nil {
		return nil, err
	}
	s := &Server{Host: "unix://" + dir + "/socket", dir: dir, said: filepath.Join(dir, "log")}
	config := map[string]any{
		"data-root": dir + "/data", "exec-root": dir + "/exec", "pidfile": dir + "/pid", "hosts": []string{s.Host}, "bridge": "none",
		"iptables": false, "ip6tables": false, "ip-forward": false, "ip-masq": false, "storage-driver": "overlay2",
	}
	if users {
		config["userns-remap"] = "nobody:nogroup"
	}
	maps.Copy(config, more)
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	// Users of containers are in files that only this dockerd sees.
	const begin = `for f in subuid subgid; do touch /etc/$f && mount --bind "$0/$f" /etc/$f || exit 1; done; exec dockerd --config-file "$0/daemon.json"`
	log, err := os.Create(s.said)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	for name, content := range map[string]string{"daemon.json": string(text), "subuid": "nobody:2000000000:65536\n", "subgid": "nobody:2000000000:65536\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(dir, 0o711); err != nil { // the users of containers pass it
		return nil, err
	}
	s.cmd = exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", begin, dir) //nolint:noctx // Stop ends it
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait()
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if err = s.Docker(ctx, "version"); err == nil {
			return s, nil
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		case <-s.done:
		}
		text, _ := os.ReadFile(s.said)
		return nil, errors.Join(fmt.Errorf("dockerd, of Debian's package docker.io, does not start: %w\n%s", err, text), s.Stop())
	}
}

// Docker runs a command of the client.
func (s *Server) Docker(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+s.Host)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("docker %q: %w: %s", args, err, out)
	}
	return nil
}

// Stop ends the server with all its containers, and removes its files.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(30 * time.Second):
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		<-s.done
	}
	return os.RemoveAll(s.dir)
}
