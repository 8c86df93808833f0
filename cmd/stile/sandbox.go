package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stilehost/stile/capabilities/sandbox"
	"github.com/stilehost/stile/capabilities/sandbox/images"
	"github.com/stilehost/stile/capabilities/sandbox/images/pull"
	"github.com/stilehost/stile/internal/printable"
)

type sandboxCommand struct {
	Image sandboxImage `cmd:"" help:"Make images, list and remove them."`
}

// Help implements kong.HelpProvider.
func (*sandboxCommand) Help() string {
	return `A sandbox is a container with real programs, for tools that have a binding of the kind sandbox. It needs Linux, root, and crun, runc, podman or docker, of which STILE_SANDBOX names one; stile doctor says what is missing.

Examples:

    stile sandbox image ls
    stile run task.ts build --bind box=sandbox:host --bind files=dir:.,rw
    STILE_SANDBOX=podman stile doctor`
}

type sandboxImage struct {
	Ls     imageLs     `cmd:"" help:"List the images."`
	Rm     imageRm     `cmd:"" help:"Remove images."`
	Debian imageDebian `cmd:"" help:"Make an image of Debian packages, with debootstrap."`
	OCI    imageOCI    `cmd:"" name:"oci" help:"Make an image of an OCI image layout."`
	Pull   imagePull   `cmd:"" help:"Make an image of one in a registry."`
	Host   imageHost   `cmd:"" help:"Make an image of this machine's programs and some of its folders."`
}

// Help implements kong.HelpProvider.
func (*sandboxImage) Help() string {
	return `Images are kept in STILE_HOME. The image host is always there: the programs of this machine, which are its /usr and a few files of /etc, without its data.

Examples:

    stile sandbox image ls
    stile sandbox image debian tools git nodejs npm cargo golang
    stile sandbox image pull node registry.example.com/library/node:22
    stile sandbox image oci node ./node-layout.tar --tag 22
    stile sandbox image host rust /opt/rust
    stile sandbox image rm tools`
}

// imagesFolder is where images are kept, and the settings.
func imagesFolder() (string, settings, error) {
	where, err := readSettings()
	return filepath.Join(where.home, "sandbox", "images"), where, err
}

type imageLs struct {
	asJSON
}

// Help implements kong.HelpProvider.
func (*imageLs) Help() string {
	return `Examples:

    stile sandbox image ls
    stile sandbox image ls --json`
}

// Run implements the command.
func (c *imageLs) Run(_ context.Context, s *streams) error {
	dir, _, err := imagesFolder()
	if err != nil {
		return err
	}
	all, err := images.List(dir)
	if err != nil {
		return err
	}
	if c.JSON {
		if all == nil {
			all = []images.Image{}
		}
		return printJSON(s.out, map[string][]images.Image{"images": all})
	}
	rows := [][]string{{"IMAGE", "SIZE", "MADE", "SOURCE"}, {images.Host, "", "", "the programs of this machine"}}
	for _, i := range all {
		rows = append(rows, []string{i.Name, about(i.Bytes), i.Made.Format("2006-01-02"), line(i.Source, 200)})
	}
	_, err = io.WriteString(s.out, table("", rows))
	return err
}

type imageRm struct {
	Image []string `arg:"" help:"Images, as stile sandbox image ls prints them."`
}

// Help implements kong.HelpProvider.
func (*imageRm) Help() string {
	return `Grants of an image stay. They fail until an image of that name is there again.

Examples:

    stile sandbox image rm tools`
}

// Run implements the command.
func (c *imageRm) Run(_ context.Context, s *streams) error {
	dir, _, err := imagesFolder()
	if err != nil {
		return err
	}
	for _, name := range c.Image {
		if err := images.Remove(dir, name); errors.Is(err, fs.ErrNotExist) {
			return usagef("there is no image %q; stile sandbox image ls lists them", name)
		} else if err != nil {
			return err
		}
		s.say("removed %s", name)
	}
	return nil
}

type imageDebian struct {
	Name    string   `arg:"" help:"The image's name."`
	Package []string `arg:"" optional:"" help:"Debian packages, beside the smallest system."`
	Suite   string   `default:"bookworm" help:"The release of Debian."`
	Mirror  string   `help:"The URL of a mirror. Default: debootstrap's."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*imageDebian) Help() string {
	return `The command runs debootstrap and apt-get, as root. The scripts of the packages run on this machine, so you trust who made them as when you install them.

Examples:

    stile sandbox image debian tools git nodejs npm cargo golang
    stile sandbox image debian small --suite trixie --mirror https://mirror.example.com/debian`
}

// Run implements the command.
func (c *imageDebian) Run(ctx context.Context, s *streams) error {
	dir, _, err := imagesFolder()
	if err != nil {
		return err
	}
	i, err := images.FromDebian(ctx, dir, c.Name, images.Debian{Suite: c.Suite, Mirror: c.Mirror, Packages: c.Package}, s.err)
	return s.made(i, err, c.JSON)
}

type imageOCI struct {
	Name   string `arg:"" help:"The image's name."`
	Layout string `arg:"" type:"path" help:"An OCI image layout: a folder, or a tar archive of one."`
	Tag    string `help:"Which image of the layout. Default: the only one."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*imageOCI) Help() string {
	return `Other programs make such layouts: skopeo copy docker://debian oci:debian-layout, docker buildx build --output type=oci,dest=layout.tar, podman save --format oci-archive.

Devices, owners, and setuid and setgid bits of the image are left out.

Examples:

    stile sandbox image oci debian ./debian-layout
    stile sandbox image oci node ./node-layout.tar --tag 22`
}

// Run implements the command.
func (c *imageOCI) Run(ctx context.Context, s *streams) error {
	dir, _, err := imagesFolder()
	if err != nil {
		return err
	}
	i, err := images.FromOCI(ctx, dir, c.Name, c.Layout, c.Tag)
	return s.made(i, err, c.JSON)
}

type imagePull struct {
	Name      string `arg:"" help:"The image's name."`
	Reference string `arg:"" help:"What to pull: REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST."`
	registryFlags
	asJSON
}

// Help implements kong.HelpProvider.
func (*imagePull) Help() string {
	return `A tag is looked up once. Everything else is fetched by digest and checked while it is unpacked. Of several platforms, the command takes this machine's. It prints the digest of the image, to pull the same one again. The registry must have https, unless it has a loopback address.

The command ends if nothing arrives for half a minute. A layer whose connection breaks is continued. A pull that the registry, Ctrl-C or a kill ended goes on where it was: what came of its layers is kept for a day. Nothing else stays of a pull that fails. The image's bounds are 32 GiB as it is in the registry, 32 GiB of files, 4,000,000 of them, and 512 layers. Devices, owners, and setuid and setgid bits are left out.

Examples:

    stile sandbox image pull node registry.example.com/library/node:22
    stile sandbox image pull tools registry.example.com/team/tools@sha256:4c6a1e9d3a3e4b1f8f1f3f7c1c0d5a0e5a4f9b2c7d8e6f0a1b2c3d4e5f60718 --json
    stile sandbox image pull tools registry.example.com/team/tools:3 --registry-user ann --registry-secret registry-password`
}

// Run implements the command.
func (c *imagePull) Run(ctx context.Context, s *streams) error {
	dir, where, err := imagesFolder()
	if err != nil {
		return err
	}
	o := pull.Options{Username: c.RegistryUser, PlainHTTP: onThisMachine(c.Reference)}
	if o.Password, err = c.password(ctx, newCredentials(ctx, where, s)); err != nil {
		return err
	}
	layer := 0
	o.Progress = func(p images.Progress) {
		if s.interactive() || p.Layer > layer {
			s.say("stile: layer %d of %d; %s of %s", p.Layer, p.Layers, about(p.Bytes), about(p.Total))
		}
		layer = p.Layer
	}
	i, err := pull.Image(ctx, dir, c.Name, c.Reference, o)
	if err != nil {
		return registryError(err)
	}
	if c.JSON {
		return printJSON(s.out, i)
	}
	_, err = fmt.Fprintf(s.out, "%s: %s\n", i.Name, i.Digest)
	return err
}

type imageHost struct {
	Name   string   `arg:"" help:"The image's name."`
	Folder []string `arg:"" type:"path" help:"Folders of this machine, which the sandbox can read at the same places. Their folders bin are in PATH."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*imageHost) Help() string {
	return `A sandbox of the image reads everything in these folders that every user of this machine may read. It refuses folders with STILE_HOME, and those of the system's data.

Examples:

    stile sandbox image host rust /opt/rust`
}

// Run implements the command.
func (c *imageHost) Run(_ context.Context, s *streams) error {
	dir, where, err := imagesFolder()
	if err != nil {
		return err
	}
	i, err := images.FromHost(dir, c.Name, c.Folder, []string{where.home, where.cache})
	return s.made(i, err, c.JSON)
}

// made reports an image that a command made.
func (s *streams) made(i images.Image, err error, asJSON bool) error {
	if err != nil {
		return usagef("make the image: %w", err)
	}
	if asJSON {
		return printJSON(s.out, i)
	}
	_, err = fmt.Fprintf(s.out, "%s\n", i.Name)
	return err
}

// sandboxes starts a small sandbox, and says which of its limits hold. If nobody chose what makes containers, it tries all that is installed.
func (e *examination) sandboxes(ctx context.Context) {
	remedy := "If you need sandboxes: Linux, root, and crun, runc, podman or docker (apt-get install crun). Everything else works without them."
	if e.sandbox.Runtime != "" {
		remedy = "STILE_SANDBOX chooses it. Unset, it is the first of crun, runc, podman and docker that is installed."
	}
	o := e.sandbox
	o.Dir = filepath.Join(e.home, "sandbox")
	e.trySandbox(ctx, "sandbox", remedy, o)
	if e.sandbox.Runtime != "" {
		return
	}
	first := true
	for _, o.Runtime = range sandbox.Runtimes {
		if _, err := exec.LookPath(o.Runtime); err != nil {
			continue
		}
		if first { // it was tried already
			first = false
			continue
		}
		e.trySandbox(ctx, "sandbox "+o.Runtime, "Only STILE_SANDBOX="+o.Runtime+" needs it.", o)
	}
}

func (e *examination) trySandbox(ctx context.Context, check, remedy string, o sandbox.Options) {
	checks, err := sandbox.Probe(ctx, o)
	if err != nil {
		e.add(check, statusOK, remedy, "not here: %s", printable.Short(err.Error(), 600))
		return
	}
	var holds, fails []string
	for _, c := range checks {
		switch {
		case c.Name == "runtime":
			holds = append(holds, c.Detail)
		case c.OK:
			holds = append(holds, c.Name)
		default:
			fails = append(fails, c.Name+" ("+c.Detail+")")
		}
	}
	text := fmt.Sprintf("%s; verified limits: %s", holds[0], strings.Join(holds[1:], ", "))
	if len(fails) > 0 {
		e.add(check, statusWarning, "The kernel lacks these cgroup controllers.", "%s; not verified: %s", text, strings.Join(fails, ", "))
		return
	}
	e.add(check, statusOK, "", "%s", text)
}
