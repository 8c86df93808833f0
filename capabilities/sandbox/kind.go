package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/internal/egress"
	"github.com/stilehost/stile/capabilities/sandbox/images"
	"github.com/stilehost/stile/capabilities/sandbox/internal/box"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/turns"
)

// Kind is a container with real tools. The options of a site are [Options].
var Kind = &capability.Kind{
	Name: "sandbox", Interface: Interface, Example: exampleRights, Parse: parse, ParseSpec: parseSpec, Learn: newRecorded,
	SpecForm: "sandbox:IMAGE[,option]...",
	SpecMeans: `a container with the programs of an image that stile sandbox image made, or of this
machine (sandbox:host); options: memory=1GiB, disk=2GiB, cpu=1, processes=256,
time=10m for each command, network=https://example.com (repeatable), traffic=1GiB over it
in one call, and allow=PATH for files that programs act on; intercept ends TLS in this program: then network=RULE is what
http takes, with its options after it`,
}

// Runtimes are what can make the container of a sandbox: OCI runtimes, and engines. An engine takes longer to start a command. A docker
// is that of DOCKER_HOST.
var Runtimes = box.Runtimes

// Options says how a site runs sandboxes. The zero value of a field means its default.
type Options struct {
	// Dir is where images are kept, and what sandboxes need while they run. Default: the folder sandbox of the site's.
	Dir string
	// Runtime is what makes containers: one of [Runtimes], or a path. Default: the first of them that is installed.
	Runtime string
	// Storage says where the files of sandboxes are: "memory" or "disk". Default: on disk where the machine can.
	Storage string
	// WithoutUserNamespace lets sandboxes run as the user of this process on a machine without user namespaces. Default: refused.
	WithoutUserNamespace bool
	// Sandboxes is how many run at once. Default 8.
	Sandboxes int
	// Site has the resolver and what else rules of a network need. A grant that is opened at a site uses that.
	Site *capability.Site
	// Log gets what is wrong with this machine. Default: nobody.
	Log *slog.Logger
}

// Rights are the right to run commands in sandboxes of one image.
type Rights struct {
	// Image names an image, or "host" for the programs of this machine.
	Image string
	// Limits are those of each sandbox.
	Limits Limits
	// Network are rules with a scheme, a host and a port: inside TLS, a proxy sees nothing else. With Intercept they may have all that a rule
	// of http has but MaxResponse. Without rules there is no network.
	Network []http.Rule
	// Within are sets of rules, an operator's ceilings. Each set must also allow a request. A manifest has none.
	Within [][]http.Rule
	// Intercept ends TLS in the proxy, which then sees whole requests. Programs of the sandbox trust the proxy's authority.
	Intercept bool
	// Allow are paths that may be copied to directories of the machine although programs act on such files.
	Allow []string
}

// Kind implements [capability.Grant].
func (Rights) Kind() *capability.Kind { return Kind }

// Interface implements [capability.Grant].
func (Rights) Interface() string { return Interface }

// Describe implements [capability.Grant].
func (g Rights) Describe() []string {
	l := g.Limits.withDefaults()
	programs := "any program of the image " + g.Image
	if g.Image == images.Host {
		programs = "any program of this machine, without its data,"
	}
	lines := []string{
		"may run " + programs + " and any code in a container: only this machine's kernel is between them and the machine",
		fmt.Sprintf("may take %s of memory, %s of disk, %v of the processors, %d processes, and %s for each command",
			showSize(l.Memory), showSize(l.Disk), l.CPU, l.Processes, showTime(l.Time)),
		"may copy files from and to the directories of the extension's other bindings",
	}
	if len(g.Network) == 0 {
		lines = append(lines, "has no network there")
	} else {
		lines = append(lines, "may send and take "+showSize(l.Traffic)+" over its network in one call")
	}
	lines = append(lines, g.traffic().Describe("may use a network there, whose encryption ends in this program, and what programs may send is:", func(place string) string {
		return "may send anything to " + place + " and take anything from there"
	})...)
	for _, p := range g.Allow {
		lines = append(lines, printable.Line("may put "+p+" into directories of this machine, where other programs act on it"))
	}
	return lines
}

// Authority implements [capability.Grant].
func (g Rights) Authority() []string {
	l := g.Limits.withDefaults()
	lines := []string{
		"sandbox " + g.Image, "sandbox memory " + showSize(l.Memory), "sandbox disk " + showSize(l.Disk), fmt.Sprintf("sandbox cpu %v", l.CPU),
		fmt.Sprintf("sandbox processes %d", l.Processes), "sandbox time " + showTime(l.Time),
	}
	if len(g.Network) > 0 {
		lines = append(lines, "sandbox traffic "+showSize(l.Traffic))
	}
	lines = append(lines, g.traffic().Authority("sandbox network")...)
	for _, p := range g.Allow {
		lines = append(lines, printable.Line("sandbox allow "+p))
	}
	return lines
}

// Covers implements [capability.Grant].
func (g Rights) Covers(asked capability.Grant) bool {
	a, ok := asked.(Rights)
	if !ok || g.Image != a.Image || !g.traffic().Covers(a.traffic()) {
		return false
	}
	for _, p := range a.Allow {
		if !slices.ContainsFunc(g.Allow, func(q string) bool { return p == q || strings.HasPrefix(p, q+"/") }) {
			return false
		}
	}
	has, wants := g.Limits.withDefaults(), a.Limits.withDefaults()
	return wants == wants.within(has)
}

// within are limits that are nowhere above others.
func (l Limits) within(most Limits) Limits {
	return Limits{
		min(l.Memory, most.Memory), min(l.Disk, most.Disk), min(l.CPU, most.CPU), min(l.Processes, most.Processes), min(l.Time, most.Time),
		min(l.Traffic, most.Traffic),
	}
}

// Limit implements [capability.Limiter]: a ceiling for the same image lowers the limits, and drops rules and paths that it does not allow.
func (g Rights) Limit(ceiling []capability.Grant) capability.Grant {
	for _, one := range ceiling {
		c, ok := one.(Rights)
		if !ok || c.Image != g.Image {
			continue
		}
		if c.Covers(g) {
			return g
		}
		limited := Rights{Image: g.Image, Limits: g.Limits.withDefaults().within(c.Limits.withDefaults())}
		network := g.traffic()
		if !c.traffic().Covers(network) {
			network, _ = network.Limit([]egress.Traffic{c.traffic()})
		}
		limited.Network, limited.Within = network.Rules, network.Within
		limited.Intercept = g.Intercept && len(network.Rules) > 0
		for _, p := range g.Allow {
			if slices.ContainsFunc(c.Allow, func(q string) bool { return p == q || strings.HasPrefix(p, q+"/") }) {
				limited.Allow = append(limited.Allow, p)
			}
		}
		return limited
	}
	return nil
}

// Reach implements [capability.Reacher].
func (g Rights) Reach() (changes, open bool) { return true, len(g.Network) > 0 }

// Hosts implements [capability.Hoster].
func (g Rights) Hosts() []string { return g.traffic().Hosts() }

// Size implements [capability.Sizer].
func (g Rights) Size() (rules, work int) { return g.traffic().Size() }

// Open implements [capability.Opener].
func (g Rights) Open(_ context.Context, s *capability.Site) (abi.Capability, error) {
	return g.open(s)
}

// Last implements [capability.Laster]: the container goes on from call to call.
func (g Rights) Last(_ context.Context, s *capability.Site) (abi.Capability, error) {
	opened, err := g.open(s)
	if err != nil {
		return nil, err
	}
	lasting := opened.Lasting()
	s.Hold(lasting, lasting.Close)
	return lasting, nil
}

func (g Rights) open(s *capability.Site) (*Grant, error) {
	o, _ := s.Options(Kind).(Options)
	o.Dir = cmp.Or(o.Dir, filepath.Join(s.Dir, "sandbox"))
	o.Site = s
	return New(o, g, s.Private)
}

// slots bounds the sandboxes of each folder of this process.
var slots = newSlots()

// New returns the capability of a grant. private are folders that no image may show.
func New(o Options, g Rights, private []string) (*Grant, error) {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	limits := g.Limits.withDefaults()
	free := slots.of(o.Dir, cmp.Or(o.Sandboxes, maxSandboxes))
	config := box.Options{Dir: filepath.Join(o.Dir, "run"), Runtime: o.Runtime, Storage: o.Storage, WithoutUserNamespace: o.WithoutUserNamespace}
	return &Grant{limits: limits, allowed: g.Allow, log: log, make: func(ctx context.Context) (machine, *turns.Seat, error) {
		seat, err := free.Take(ctx)
		if err != nil {
			return nil, nil, err
		}
		m, err := startImage(ctx, o, config, g, private, log)
		if err != nil {
			seat.Give()
			return nil, nil, err
		}
		return counted{m, seat.Give}, seat, nil
	}}, nil
}

func startImage(ctx context.Context, o Options, config box.Options, g Rights, private []string, log *slog.Logger) (machine, error) {
	limits := g.Limits.withDefaults()
	image, release, err := images.Open(filepath.Join(o.Dir, "images"), g.Image, private)
	if err != nil {
		return nil, err
	}
	slots.sweep(config.Dir, log)
	begin := func(authority []byte) (machine, error) {
		return start(ctx, config, box.Root{Dir: image.Root, Paths: image.Paths, Env: image.Env, Authority: authority}, box.Limits{
			Memory: limits.Memory, Disk: limits.Disk, Files: max(limits.Disk/bytesPerFile, 1024), Processes: limits.Processes, CPU: limits.CPU,
		})
	}
	var m machine
	if len(g.Network) == 0 {
		m, err = begin(nil)
	} else {
		m, err = connect(ctx, o.Site, g, log, begin)
	}
	if err != nil {
		release()
		return nil, err
	}
	return counted{m, release}, nil
}

// counted is a machine that lets something go once it is closed.
type counted struct {
	machine
	release func()
}

func (c counted) close() error {
	defer c.release()
	return c.machine.close()
}
