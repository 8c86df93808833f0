// Command languages puts guests in several languages beside each other: the example in examples/notes, by each language's toolchain, in the
// same run. It prints a table and writes it as JSON and Markdown. bench/README.md says how each figure is taken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stilehost/stile/bench/internal/measure"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/toolchain"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	root := flag.String("root", "..", "folder of the repository")
	out := flag.String("out", "out/languages.json", "write the figures to this `file`, and to one that ends in .md")
	quick := flag.Bool("quick", false, "run a tenth of the rounds, to see that everything works")
	only := flag.String("only", "", "measure these `languages` beside TypeScript: c,go,...")
	hold := flag.Int("hold", 0, "keep so many calls of -component waiting until stdin ends")
	component := flag.String("component", "", "`file` of the component for -hold")
	folder := flag.String("folder", "", "where -hold has its cache")
	flag.Parse()
	if os.Getenv("GOGC") == "" { // as stile does
		host.CollectLater()
	}
	if *hold > 0 {
		return holdCalls(ctx, *hold, *component, *folder, os.Stdin, os.Stdout)
	}
	var names []string
	if *only != "" {
		names = strings.Split(*only, ",")
	}
	kept, err := filepath.Abs(filepath.Dir(*out))
	if err != nil {
		return err
	}
	r, err := measureAll(ctx, &lab{root: *root, kept: kept}, names, *quick)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(os.Stdout, r.terminal()); err != nil {
		return err
	}
	return r.write(*out)
}

// subject is a language that is measured.
type subject struct {
	language
	file      string
	component *host.Component
	row       *row
	calls     measure.Series
}

// lab is what a run shares.
type lab struct {
	dir, root string
	kept      string // what later runs use again
	host      *host.Host
	tools     *toolchain.Toolchain
	places    *places
	all       []*subject
}

func measureAll(ctx context.Context, l *lab, names []string, quick bool) (_ *results, err error) {
	rounds := 30
	if quick {
		rounds = 3
	}
	r := &results{Machine: measure.DescribeMachine(ctx)}
	if l.dir, err = os.MkdirTemp("", "stile-languages-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if l.root, err = filepath.Abs(l.root); err != nil {
		return nil, err
	}
	if l.host, l.tools, err = openHost(ctx, filepath.Join(l.dir, "cache"), 0); err != nil {
		return nil, err
	}
	if l.places, err = openPlaces(ctx, l.dir, nil); err != nil {
		return nil, err
	}
	known := languages()
	for _, name := range names {
		if !slices.ContainsFunc(known, func(l language) bool { return l.name == name }) {
			return nil, fmt.Errorf("there is no language %q", name)
		}
	}
	for _, language := range known {
		if len(names) > 0 && language.name != typescript && !slices.Contains(names, language.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s ...\n", language.title)
		row := &row{Language: language.title, Name: language.name}
		r.Rows = append(r.Rows, row)
		s, err := l.prepare(ctx, language, row)
		if lacks := (*missingError)(nil); errors.As(err, &lacks) && language.name != typescript {
			row.Missing, row.Install = lacks.reason, lacks.install
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", language.title, err)
		}
		l.all = append(l.all, s)
	}
	for range rounds {
		for _, at := range rand.Perm(len(l.all)) {
			if err := l.round(ctx, l.all[at]); err != nil {
				return nil, fmt.Errorf("%s: %w", l.all[at].title, err)
			}
		}
	}
	for _, s := range l.all {
		e, over := s.calls.Estimate(), s.calls.Over(l.all[0].calls)
		p95 := s.calls.P95()
		s.row.Call = &callFigures{US: e, P95US: p95, Over: over}
	}
	r.Machine.LoadAfter = measure.Load()
	return r, nil
}

func (l *lab) close() (err error) {
	for _, s := range l.all {
		err = errors.Join(err, s.component.Close())
	}
	if l.places != nil {
		err = errors.Join(err, l.places.close())
	}
	if l.tools != nil {
		err = errors.Join(err, l.tools.Close())
	}
	if l.host != nil {
		err = errors.Join(err, l.host.Close())
	}
	return errors.Join(err, os.RemoveAll(l.dir))
}

// openHost opens a host with an empty or a filled cache.
func openHost(ctx context.Context, cache string, instances int) (*host.Host, *toolchain.Toolchain, error) {
	h, err := host.New(ctx, host.Options{CacheDir: cache, KeyDir: cache, Instances: instances})
	if err != nil {
		return nil, nil, err
	}
	tools, err := toolchain.New(ctx, h, toolchain.Options{CacheDir: cache, KeyDir: cache, Engine: os.Getenv("STILE_ENGINE")})
	if err != nil {
		return nil, nil, errors.Join(err, h.Close())
	}
	return h, tools, nil
}

// prepare builds a language's component, loads it with an empty cache and with a filled one, and measures its memory.
func (l *lab) prepare(ctx context.Context, language language, row *row) (s *subject, err error) {
	dir, err := os.MkdirTemp(l.dir, language.name+"-")
	if err != nil {
		return nil, err
	}
	place := &workplace{root: l.root, dir: dir, kept: l.kept, host: l.host, tools: l.tools}
	wasm, err := language.build(ctx, place)
	if err != nil {
		return nil, err
	}
	row.Toolchain, row.Bytes = place.toolchain, len(wasm)
	s = &subject{language: language, file: filepath.Join(dir, "notes.wasm"), row: row}
	if err := os.WriteFile(s.file, wasm, 0o600); err != nil {
		return nil, err
	}
	cache := filepath.Join(dir, "cache")
	for _, again := range []bool{false, true} {
		if err := l.load(ctx, cache, wasm, row, again); err != nil {
			return nil, err
		}
	}
	if s.component, err = l.host.Load(ctx, wasm); err != nil {
		return nil, err
	}
	const few, many = 20, 120
	var kib [2]float64
	for i, n := range []int{few, many} {
		if kib[i], err = l.held(ctx, s, n); err != nil {
			return s, errors.Join(fmt.Errorf("calls that wait: %w", err), s.component.Close())
		}
	}
	row.PrivateKiB = (kib[1] - kib[0]) / (many - few)
	return s, nil
}

// load loads a component in a host of its own.
func (l *lab) load(ctx context.Context, cache string, wasm []byte, row *row, again bool) error {
	before := processor()
	h, tools, err := openHost(ctx, cache, 0)
	if err != nil {
		return err
	}
	engine := ms(processor() - before)
	start, before := time.Now(), processor()
	c, err := h.Load(ctx, wasm)
	took, used := ms(time.Since(start)), ms(processor()-before)
	switch {
	case again:
		row.ReloadMS = took
	case row.Name == typescript:
		row.EngineCPUMS = engine
		fallthrough
	default:
		row.LoadMS, row.LoadCPUMS = took, used
	}
	if err == nil {
		err = c.Close()
	}
	return errors.Join(err, tools.Close(), h.Close())
}

// processor is the processor time of this process and of the children that have ended.
func processor() (all time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if syscall.Getrusage(who, &r) == nil {
			all += time.Duration(r.Utime.Nano() + r.Stime.Nano())
		}
	}
	return all
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// round makes some fresh calls of a tool, for about 40 ms.
func (l *lab) round(ctx context.Context, s *subject) error {
	const least, most, share = 5, 200, 40 * time.Millisecond
	var trials []float64
	for began := time.Now(); len(trials) < least || len(trials) < most && time.Since(began) < share; {
		start := time.Now()
		out, err := s.component.Call(ctx, "search_notes", []byte(searchInput), l.places.env())
		took := time.Since(start)
		if err != nil {
			return err
		}
		if err := checkAnswer(out); err != nil {
			return err
		}
		trials = append(trials, float64(took)/float64(time.Microsecond))
	}
	s.calls = append(s.calls, trials)
	return nil
}

// places is the env of calls. Searching always finds the same, so that calls cost what the guest costs.
type places struct {
	store *workspace.Store
	notes *notes
}

type notes struct {
	*workspace.Directory
	waiting chan<- struct{} // if it is not nil, a search says so here and waits until its call ends
}

// Grep implements the workspace's grep.
func (n *notes) Grep(ctx context.Context, _ string, _ workspace.Search, _ uint32, _ *string) (workspace.Matches, error) {
	if n.waiting != nil {
		n.waiting <- struct{}{}
		<-ctx.Done()
		return workspace.Matches{}, ctx.Err()
	}
	return workspace.Matches{Matches: []workspace.Match{
		{Path: "plans.md", Line: 1, Column: 5, Text: "see Žofie at 10 🎉"}, {Path: "plans.md", Line: 2, Column: 5, Text: "buy milk"},
	}}, nil
}

const (
	searchInput  = `{"pattern": "at \\d+|milk"}`
	searchOutput = `[{"title":"plans","line":1,"text":"see Žofie at 10 🎉"},{"title":"plans","line":2,"text":"buy milk"}]`
)

func openPlaces(ctx context.Context, dir string, waiting chan<- struct{}) (*places, error) {
	store, err := workspace.Open(ctx, filepath.Join(dir, "notes.db"), workspace.Options{})
	if err != nil {
		return nil, err
	}
	return &places{store, &notes{store.Workspace("notes"), waiting}}, nil
}

func (p *places) env() host.Env {
	return host.Env{"notes": p.notes, "random": random.System(), "clock": clock.System()}
}

func (p *places) close() error { return p.store.Close() }
