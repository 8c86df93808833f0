package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/lazyregexp"
)

// Debian says what debootstrap installs.
type Debian struct {
	// Suite is a release, such as "bookworm". Default: bookworm.
	Suite string
	// Mirror is a URL. Default: debootstrap's.
	Mirror string
	// Packages are installed beside the smallest system, with what they need.
	Packages []string
}

var (
	suiteForm   = lazyregexp.New(`^[a-z][a-z0-9.-]{0,63}$`)
	packageForm = lazyregexp.New(`^[a-z0-9][a-z0-9+.-]{1,127}$`)
	mirrorForm  = lazyregexp.New(`^(https?://|file:///)[!-~]+$`)
)

// FromDebian makes an image with debootstrap, which this process must be root for. The packages' own scripts run, on this machine, as
// when they are installed: their authors are trusted. log gets what the programs write.
func FromDebian(ctx context.Context, dir, name string, d Debian, log io.Writer) (Image, error) {
	if d.Suite == "" {
		d.Suite = "bookworm"
	}
	if !suiteForm.MatchString(d.Suite) {
		return Image{}, fmt.Errorf("%q is no release of Debian", d.Suite)
	}
	if d.Mirror != "" && !mirrorForm.MatchString(d.Mirror) {
		return Image{}, fmt.Errorf("%q is no URL of a mirror", d.Mirror)
	}
	for _, p := range d.Packages {
		if !packageForm.MatchString(p) {
			return Image{}, fmt.Errorf("%q is no package", p)
		}
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return Image{}, fmt.Errorf("debootstrap is needed: apt-get install debootstrap: %w", err)
	}
	packages := slices.Compact(slices.Sorted(slices.Values(d.Packages)))
	sum := sha256.Sum256([]byte(d.Suite + "\n" + d.Mirror + "\n" + strings.Join(packages, "\n")))
	i := Image{
		Digest: "sha256:" + hex.EncodeToString(sum[:]),
		Source: strings.TrimSpace("Debian " + d.Suite + " " + strings.Join(packages, " ")),
	}
	return keep(dir, name, i, func(root string) error {
		root, err := filepath.Abs(root)
		if err != nil {
			return err
		}
		args := []string{"--variant=minbase", d.Suite, root}
		if d.Mirror != "" {
			args = append(args, d.Mirror)
		}
		if err := program(ctx, log, "debootstrap", args...); err != nil || len(packages) == 0 {
			return err
		}
		// Not by debootstrap itself, which cannot resolve all of what packages such as npm need.
		apt := []string{root, "/usr/bin/env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y", "--no-install-recommends"}
		for _, more := range [][]string{append([]string{"install"}, packages...), {"clean"}} {
			if err := program(ctx, log, "chroot", append(slices.Clip(apt), more...)...); err != nil {
				return err
			}
		}
		return nil
	})
}

func program(ctx context.Context, log io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
