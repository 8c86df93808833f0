package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stilehost/stile/capabilities/browser"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/private"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

const (
	minDisk = 1 << 30 // bytes
	// minMaps is Linux's own default of vm.max_map_count. A live instance needs a few maps.
	minMaps = 65_530
)

// folder checks that a folder exists or can be made, and that nobody else can write to it.
func (e *examination) folder(check, dir, variable string) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(dir, 0o700); err == nil {
			info, err = os.Stat(dir)
		}
	}
	elsewhere := "Choose another folder with " + variable + "."
	if err != nil {
		e.add(check, statusMissing, elsewhere, "%v", err)
		return
	}
	var open *private.Error
	switch {
	case !info.IsDir():
		e.add(check, statusMissing, elsewhere, "%s is not a folder", dir)
	case errors.As(private.Check(dir, info, private.Write), &open):
		e.add(check, statusMissing, open.Remedy+" ("+variable+")", "%s %s", dir, open.Problem)
	case unix.Access(dir, unix.W_OK) != nil:
		e.add(check, statusMissing, "chmod 700 "+dir+", or choose another folder with "+variable+".", "%s cannot be written to, so nothing new is kept", dir)
	default:
		e.add(check, statusOK, "", "%s, mode %04o", dir, info.Mode().Perm())
	}
}

// web starts a headless browser. Only the capability browser needs it.
func (e *examination) web(ctx context.Context) {
	const check = "browser"
	r := browser.Probe(ctx, e.browser)
	if len(r.Lacks) == 0 {
		e.add(check, statusOK, "", "%s, in its own sandbox, as nobody, in an empty network", r.Version)
		return
	}
	remedy := "Only grants of the kind browser need it."
	if e.browser.Unconfined {
		remedy += " STILE_BROWSER=unconfined starts it all the same: its proxy alone keeps it from other hosts."
	}
	e.add(check, statusWarning, remedy, "%s", strings.Join(r.Lacks, "; "))
}

// helpers looks for the programs that some commands start. Everything else works without them.
func (e *examination) helpers() {
	for _, name := range []string{benchHelper, sigstoreHelper} {
		path, err := findHelper(name)
		if err != nil {
			e.add(name, statusOK, "If you need it, run make build in Stile's source, and put "+name+" beside stile or in PATH.", "not found; it %s", helperUse(name))
			continue
		}
		e.add(name, statusOK, "", "%s, which %s", path, helperUse(name))
	}
}

// npm checks that the npm client works, which obtains the JavaScript engine once.
func (e *examination) npm(ctx context.Context) bool {
	remedy := toolchain.InstallNPM() + ", or name a copy of the engine in STILE_ENGINE."
	npm, err := version(ctx, "npm")
	if err != nil {
		e.add("npm", statusWarning, remedy, "%v", err)
		return false
	}
	node, err := version(ctx, "node")
	if err != nil {
		e.add("npm", statusWarning, remedy, "%v", err)
		return false
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(node, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < toolchain.MinNode {
		e.add("npm", statusWarning, remedy, "npm %s with node %s, older than %d", npm, node, toolchain.MinNode)
		return true
	}
	e.add("npm", statusOK, "", "npm %s with node %s", npm, node)
	return true
}

// npmCache says how large npm's own cache is.
func (e *examination) npmCache() {
	size, most, folder, err := npm.CacheSize(e.cache)
	if err != nil {
		e.add("npm cache", statusWarning, "Check the owner and the access of that folder.", "%s cannot be read: %v", folder, err)
		return
	}
	e.add("npm cache", statusOK, "To clear it, remove that folder. Packages are then fetched again.", "%s of answers of npm registries in %s; the older half goes above %s", printable.Size(size), folder, printable.Size(most))
}

// version asks a program for its version.
func version(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	return printable.Short(strings.TrimSpace(string(out)), 100), nil
}

func (e *examination) disk() {
	for _, place := range []struct{ check, dir string }{{"disk of home", e.home}, {"disk of cache", e.cache}} {
		var s unix.Statfs_t
		if err := unix.Statfs(place.dir, &s); err != nil {
			e.add(place.check, statusWarning, "", "the free space is unknown: %v", err)
			continue
		}
		free := uint64(s.Bavail) * uint64(s.Bsize) // the types of these fields differ between systems
		if free < minDisk {
			e.add(place.check, statusWarning, "Make room.", "%d MiB free", free>>20)
			continue
		}
		e.add(place.check, statusOK, "", "%d MiB free", free>>20)
	}
}

// maps reads how many memory maps a process may have, which bounds how many instances can live at once.
func (e *examination) maps() {
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return // not Linux
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil && n < minMaps {
		e.add("memory maps", statusWarning, fmt.Sprintf("sysctl -w vm.max_map_count=%d", 4*minMaps), "vm.max_map_count is %d, less than usual: fewer calls can run at once", n)
		return
	}
	e.add("memory maps", statusOK, "", "vm.max_map_count is %d", n)
}

// escapeGlob returns a pattern that matches exactly this path.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(filepath.Clean(path))
}
