package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/generate"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/mcp"
	"github.com/stilehost/stile/model"
	"github.com/stilehost/stile/secret"
)

// modelFlags say which model writes extensions.
type modelFlags struct {
	Model            string `env:"STILE_MODEL" placeholder:"PROTOCOL:NAME" help:"Model that writes extensions: anthropic:NAME or openai:NAME, by the protocol it speaks. Default: STILE_MODEL."`
	ModelURL         string `env:"STILE_MODEL_URL" name:"model-url" placeholder:"URL" help:"URL of the model's server, e.g. http://127.0.0.1:11434/v1. Default: STILE_MODEL_URL, or the vendor's own address."`
	ModelTemperature string `env:"STILE_MODEL_TEMPERATURE" name:"model-temperature" placeholder:"NUMBER" help:"Temperature, from 0 to 2, or none for models that take none. Default: STILE_MODEL_TEMPERATURE, or ${temperature}."`
	ModelMaxTokens   string `env:"STILE_MODEL_MAX_TOKENS" name:"model-max-tokens" placeholder:"N" help:"Maximum number of tokens in one reply. Default: STILE_MODEL_MAX_TOKENS, or ${maxTokens}."`
	ModelTimeout     string `env:"STILE_MODEL_TIMEOUT" name:"model-timeout" placeholder:"DURATION" help:"How long one reply may take. Default: STILE_MODEL_TIMEOUT, or ${timeout}."`
	ModelKey         string `env:"STILE_MODEL_KEY" name:"model-key" placeholder:"SECRET" complete:"secret" help:"Name of the secret with the model's key; stile secret set keeps one. Default: STILE_MODEL_KEY, or no key."`
}

// model returns the model that the flags name.
func (f modelFlags) model(ctx context.Context, n *session) (model.Model, error) {
	protocol, name, ok := strings.Cut(f.Model, ":")
	temperature, err := f.temperature()
	if err != nil {
		return nil, err
	}
	o := model.Options{BaseURL: f.ModelURL, Model: name, Temperature: temperature}
	if f.ModelMaxTokens != "" {
		most, err := parseCount(f.ModelMaxTokens)
		if err != nil {
			return nil, usagef("--model-max-tokens: %w", err)
		}
		o.MaxTokens = int(most)
	}
	if f.ModelTimeout != "" {
		if o.Timeout, err = parseDuration(f.ModelTimeout); err != nil {
			return nil, usagef("--model-timeout: %w", err)
		}
	}
	if f.ModelKey != "" {
		if o.Key, err = n.secrets.Get(ctx, f.ModelKey); errors.Is(err, secret.ErrNotFound) {
			return nil, usagef("--model-key: %w; stile secret set %s keeps it", err, f.ModelKey)
		} else if err != nil {
			return nil, err
		}
		o.Redact = secret.NewRedactor(o.Key).Redact
	}
	switch {
	case ok && protocol == "anthropic":
		return model.Anthropic(o)
	case ok && protocol == "openai":
		return model.OpenAI(o)
	default:
		return nil, usagef("--model %s: write anthropic:NAME or openai:NAME", f.Model)
	}
}

// temperature is the value of the flag. nil means the default.
func (f modelFlags) temperature() (*float64, error) {
	switch f.ModelTemperature {
	case "":
		return nil, nil
	case "none":
		none := -1.0
		return &none, nil
	}
	t, err := strconv.ParseFloat(f.ModelTemperature, 64)
	if err != nil || !(t >= 0 && t <= 2) {
		return nil, usagef("--model-temperature %s: write a number between 0 and 2, or none", line(f.ModelTemperature, 100))
	}
	return &t, nil
}

// generated is the outcome of a generation.
type generated struct {
	written *lifecycle.Written
	// exists are tools that already seem to do what the description asks for.
	exists []lifecycle.Found
	result generate.Result
}

// generate makes a model write an extension and takes it through all stages. draft lacks only manifest and files, and r lacks only
// what the store knows.
func (e *extensions) generate(ctx context.Context, g *generate.Generator, v lifecycle.Viewer, r generate.Request, draft lifecycle.Draft) (made generated, err error) {
	var found []lifecycle.Found
	r.Existing = func(ctx context.Context, description string) (existing []generate.Existing, err error) {
		found, existing, err = e.existing(ctx, v, description)
		return existing, err
	}
	var generation *lifecycle.Generation
	r.Begin = func(ctx context.Context) (err error) {
		generation, err = e.BeginGeneration(ctx, draft)
		return err
	}
	r.Bindings = extension.Defaults(capabilities.Builtin)
	for _, a := range e.Policy().Approve {
		r.Bindings = extension.Merge(r.Bindings, a.Bindings)
	}
	made.result, err = g.Generate(ctx, r, func(ctx context.Context, d generate.Draft) (err error) {
		if r.Name == "" {
			if err := e.free(ctx, v, d.Manifest); err != nil {
				return err
			}
		}
		draft.Manifest, draft.Files, draft.Entry = d.Manifest, map[string][]byte{d.File: []byte(d.Source)}, d.File
		made.written, err = generation.Write(ctx, draft)
		return err
	})
	if generation != nil {
		if err := generation.End(ctx, made.result.Spent().String()); err != nil {
			e.logger.WarnContext(ctx, "write the audit log", "error", err)
		}
	}
	for _, offer := range made.result.Offer {
		i := slices.IndexFunc(found, func(f lifecycle.Found) bool { return f.Name == offer.Name })
		made.exists = append(made.exists, found[i])
	}
	return made, err
}

// free reports whether a name that a model chose belongs to no active extension of a viewer, because a model must not replace one.
func (e *extensions) free(ctx context.Context, v lifecycle.Viewer, manifest []byte) error {
	m, err := extension.Parse(manifest)
	if err != nil {
		return err
	}
	switch there, err := e.Find(ctx, v, m.Name); {
	case errkind.Is[*lifecycle.NotFoundError](err) || err == nil && there.State != lifecycle.Active:
		return nil
	case err != nil:
		return err
	default:
		return &extension.ProblemsError{Stage: extension.StageValidate, Problems: []extension.Problem{
			{File: extension.ManifestFile, Text: fmt.Sprintf("there is an extension %s already", m.Name), Fix: "another name"},
		}}
	}
}

// existing finds the tools that a viewer can call and that match words of a description. The store's search compares stems. A tool's
// score is the share of the significant words that it matches. One match among several words does not count.
func (e *extensions) existing(ctx context.Context, v lifecycle.Viewer, description string) ([]lifecycle.Found, []generate.Existing, error) {
	tools, err := e.Tools(ctx, v)
	if err != nil {
		return nil, nil, err
	}
	called := make(map[string]extension.Scope, len(tools))
	for _, t := range tools {
		called[t.Name] = t.Scope
	}
	words := significant(description)
	found, err := e.Search(ctx, v, strings.Join(words, " "), len(tools))
	if err != nil {
		return nil, nil, err
	}
	// What only has words that mean the same is too little to say that it exists.
	found = slices.DeleteFunc(found, func(f lifecycle.Found) bool { return f.Words == 0 || called[f.Name] != f.Scope })
	existing := make([]generate.Existing, len(found))
	for i, f := range found {
		existing[i] = generate.Existing{Name: f.Name, Description: f.Description}
		if n := f.Words; n > 1 || len(words) == 1 {
			existing[i].Score = float64(n) / float64(len(words))
		}
	}
	return found, existing, nil
}

const maxSignificant = 64 // words to look for

// insignificant are the words that Lucene leaves out of English texts, and words that appear in any request for a tool.
var insignificant = strings.Fields(`a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with
		able all also any can each from given has have i its me my need new one our please should some want we what when where which who would you your
		add build code create extension extensions function functions generate implement input inputs make makes output outputs program result results
		return returning returns script take takes tool tools typescript use used useful user uses using utility wasm write writes`)

// significant returns the words of a description that say what it is about, each once.
func significant(description string) (words []string) {
	for _, word := range lifecycle.Words(description, -1) {
		if utf8.RuneCountInString(word) > 1 && !slices.Contains(insignificant, word) && !slices.Contains(words, word) && len(words) < maxSignificant {
			words = append(words, word)
		}
	}
	return words
}

// generateForAgents is generate for a server of agents. It is nil if no model is named.
func (e *extensions) generateForAgents(ctx context.Context, f modelFlags) (func(context.Context, mcp.GenerateRequest) (mcp.Generated, error), error) {
	if f.Model == "" {
		return nil, nil
	}
	model, err := f.model(ctx, e.session)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, r mcp.GenerateRequest) (mcp.Generated, error) {
		draft := lifecycle.Draft{
			Scope: r.Scope, Author: r.Author, Via: r.Via, Progress: func(stage extension.Stage) { r.Progress(stages[stage]) },
		}
		g := &generate.Generator{Model: model}
		made, err := e.generate(ctx, g, r.Viewer, generate.Request{Description: r.Description, New: r.New}, draft)
		spent := mcp.Spent{Tokens: made.result.Tokens, Rounds: []mcp.Round{}}
		for _, round := range made.result.Rounds { // their problems were solved, or are in the error
			spent.Rounds = append(spent.Rounds, mcp.Round{Stage: round.Stage, Tokens: round.Tokens})
		}
		if err != nil && len(made.result.Rounds) > 0 {
			err = fmt.Errorf("%w (%s)", err, made.result.Spent())
		}
		return mcp.Generated{Written: made.written, Existing: made.exists, Spent: spent}, err
	}, nil
}

type extGenerate struct {
	Description string `arg:"" help:"What the extension should do, in any words. - is stdin."`
	Name        string `placeholder:"NAME" help:"Name of the extension. If it exists, this adds a version. Default: a new name that the model chooses."`
	New         bool   `help:"Write a new extension even if a similar one exists."`
	Rounds      int    `placeholder:"N" help:"Maximum number of tries. Default: ${rounds}."`
	Tokens      int    `placeholder:"N" help:"Maximum number of tokens for all tries. Default: ${tokens}."`
	modelFlags
	addFlags
}

// Help implements kong.HelpProvider.
func (*extGenerate) Help() string {
	return `A model writes the extension, which then goes through the same steps as with stile ext add. The model sees each problem and tries again. If an existing extension seems to do the job, stile offers it instead; --new writes another. The command prints how many tokens it used, and the audit log keeps that number. Each generation counts towards limits.buildsPerHour in policy.json.

The model's server receives the description and the problems found in each try. Its key comes from the secret that --model-key names, and goes nowhere else.

Examples:

    stile ext generate 'convert between units of length' --model anthropic:claude-sonnet-4-5 --model-key anthropic-key
    stile ext generate - --model openai:qwen3-coder --model-url http://127.0.0.1:11434/v1 < wish.txt`
}

// Run implements the command.
func (c *extGenerate) Run(ctx context.Context, s *streams) error {
	if c.Model == "" {
		return usagef("no model is named: write --model, or set STILE_MODEL")
	}
	if c.Rounds < 0 || c.Tokens < 0 {
		return usagef("--rounds and --tokens must not be negative")
	}
	if c.Description == "-" {
		text, err := interruptible(ctx, func() ([]byte, error) { return readInput("-", s.in, 0) })
		if err != nil {
			return err
		}
		c.Description = string(text)
	}
	return withExtensions(ctx, s, func(e *extensions) error {
		model, err := c.model(ctx, e.session)
		if err != nil {
			return err
		}
		viewer, err := c.viewer(e.settings)
		if err != nil {
			return err
		}
		var draft lifecycle.Draft
		if err := c.fill(s, e, &draft); err != nil {
			return err
		}
		g := &generate.Generator{Model: model, Options: generate.Options{Rounds: c.Rounds, Tokens: c.Tokens}}
		text := modelText{out: s.err}
		if s.interactive() {
			g.Options.OnText = text.add
			progress := draft.Progress
			draft.Progress = func(stage extension.Stage) { text.end(); progress(stage) }
		}
		made, err := e.generate(ctx, g, viewer, generate.Request{Description: c.Description, Name: c.Name, New: c.New}, draft)
		text.end()
		for i, round := range made.result.Rounds {
			if len(round.Problems) > 0 {
				s.say("stile: attempt %d failed: %s", i+1, printable.Text((&extension.ProblemsError{Stage: round.Stage, Problems: round.Problems}).Error()))
			}
		}
		if len(made.result.Rounds) > 0 {
			s.say("stile: %s", made.result.Spent())
		}
		switch {
		case err != nil:
			return err
		case made.written != nil && c.JSON:
			if err := c.decide(ctx, s, e, made.written); err != nil {
				return err
			}
			return printJSON(s.out, generatedJSON{writtenOf(made.written), made.result.Spent()})
		case made.written != nil:
			return c.finish(ctx, s, e, made.written)
		default:
			return printOffers(s, made.exists, c.JSON)
		}
	})
}

// generatedJSON is what stile ext add prints, plus the cost.
type generatedJSON struct {
	writtenJSON
	Generation generate.Spent `json:"generation"`
}

// modelText shows what a model writes as it arrives. Every line is indented, so that none looks like one of ours.
type modelText struct {
	out   io.Writer
	round int // the round whose line is unfinished; 0 means none
}

func (t *modelText) add(round int, piece string) {
	if t.round != round {
		t.end()
		_, _ = io.WriteString(t.out, "    ")
	}
	t.round = round
	_, _ = io.WriteString(t.out, strings.ReplaceAll(printable.Text(piece), "\n", "\n    "))
}

func (t *modelText) end() {
	if t.round != 0 {
		_, _ = io.WriteString(t.out, "\n")
	}
	t.round = 0
}

// printOffers prints existing tools that seem to do what is wanted.
func printOffers(s *streams, exists []lifecycle.Found, asJSON bool) error {
	if asJSON {
		return printJSON(s.out, map[string][]foundJSON{"exists": foundOf(exists)})
	}
	s.say("stile: nothing was written, because these tools seem to do it already; use --new to write another")
	_, err := io.WriteString(s.out, foundText(exists))
	return err
}
