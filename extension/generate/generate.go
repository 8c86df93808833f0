// Package generate lets a model write an extension. It sends the rules, types and examples that an author needs. It finds the code
// in the reply, tries it, and shows the model what is wrong, until a draft passes or the rounds or tokens are used up. It grants and
// activates nothing. It treats everything that a model or its server says as hostile: bounded, and never trusted.
package generate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/model"
)

// Generator makes a model write extensions. It is safe for concurrent use if its model is.
type Generator struct {
	Model   model.Model
	Options Options
}

// Options bound a generation. The zero value works.
type Options struct {
	// Rounds is the maximum number of replies to ask for. Default 4, and at most 16.
	Rounds int
	// Tokens bounds the tokens of all rounds, in both directions. Default 200,000. A round that cannot stay below it does not begin.
	// The API's own count may still exceed it, once.
	Tokens int
	// Threshold is the minimum score at which an existing extension is offered instead. Default 0.5.
	Threshold float64
	// OnText is called with the model's words as they arrive, on the goroutine of the caller. Rounds count from 1.
	OnText func(round int, piece string)
}

// Defaults of Options.
const (
	DefaultRounds = 4
	DefaultTokens = 200_000
)

const (
	maxRounds        = 16
	defaultThreshold = 0.5

	maxText = 256 << 10 // bytes of a reply that are shown

	leastReply     = 256      // tokens that suffice for an extension
	maxRequestText = 16 << 10 // bytes of a description
	maxTypes       = 64 << 10 // bytes of declarations
	maxOffers      = 10
)

// Request describes the extension to write.
type Request struct {
	// Description says in any words what the extension does, in at most 16 KiB. It is quoted to the model as data.
	Description string
	// Name is the extension's name, kebab-case and at most 64 bytes. Default: the model's choice.
	Name string
	// Bindings are bindings that a person is likely to grant. The model may ask for others, which also need a grant.
	Bindings []extension.Binding
	// Types are TypeScript declarations that give `env` its type, at most 64 KiB. Default: toolchain.EnvTypes of Bindings.
	Types string
	// Existing, if not nil, finds extensions that may already do what the description asks for. Generate offers those that fit well
	// instead of writing another.
	Existing func(ctx context.Context, description string) ([]Existing, error)
	// New asks for a new extension even if one exists.
	New bool
	// Begin, when not nil, is called once, right before the model is first asked. Its error ends the generation.
	Begin func(ctx context.Context) error

	given []byte // the model's last manifest, which stays if a reply has only code
}

// Existing is an existing extension.
type Existing struct {
	Name        string `json:"name"`
	Version     string `json:"version,omitempty"`
	Description string `json:"description"`
	// Score is between 0 and 1: how well it fits.
	Score float64 `json:"score"`
}

// Draft is an extension as a model wrote it.
type Draft struct {
	// Manifest is the last manifest that the model gave, or a minimal one for the code if it gave none. It grants nothing.
	Manifest []byte
	// Source is the content of the one file, and File its name: always "tool.ts".
	Source, File string
}

// Round is one reply and its outcome.
type Round struct {
	// Stage is the stage at which the draft failed, and Problems are the reasons. Both are empty if the draft passed or something
	// else ended the generation.
	Stage    extension.Stage     `json:"stage,omitempty"`
	Problems []extension.Problem `json:"problems,omitempty"`
	Tokens   model.Tokens        `json:"tokens"`
}

// Spent is what a generation used.
type Spent struct {
	// Rounds are the model's replies, including one that broke off if it cost tokens. Tokens is their sum.
	Rounds []Round      `json:"rounds"`
	Tokens model.Tokens `json:"tokens"`
}

// String is one line for people, e.g. "tries: 2, tokens: 2500 in, 68 out (1200 in, 34 out; 1300 in, 34 out)".
func (s Spent) String() string {
	text := fmt.Sprintf("tries: %d, tokens: %s", len(s.Rounds), s.Tokens)
	if len(s.Rounds) < 2 {
		return text
	}
	each := make([]string, len(s.Rounds))
	for i, r := range s.Rounds {
		each[i] = r.Tokens.String()
	}
	return text + " (" + strings.Join(each, "; ") + ")"
}

// Result is the outcome of a request.
type Result struct {
	// Offer has the existing extensions that fit, the best first. If it is not empty, no model was asked.
	Offer []Existing
	// Draft is the last draft. It is empty if there was none.
	Draft Draft
	// Rounds and Tokens are as in Spent.
	Rounds []Round
	Tokens model.Tokens
	// Text is the model's last reply, made printable.
	Text string
}

// Spent returns what the model used.
func (r Result) Spent() Spent { return Spent{r.Rounds, r.Tokens} }

// Generate writes an extension. try does everything that a draft must pass, including tests and policy. The model corrects errors
// that its author can correct according to lifecycle.Mendable. Every other error of try ends the generation and is returned.
//
// Other errors are an *[UnfinishedError], a *[model.Error] and a *[RequestError]. With an error, the result has what came before it.
func (g *Generator) Generate(ctx context.Context, r Request, try func(context.Context, Draft) error) (Result, error) {
	var result Result
	if err := r.check(); err != nil {
		return result, err
	}
	var err error
	if result.Offer, err = g.offer(ctx, r); err != nil || len(result.Offer) > 0 {
		return result, err
	}
	if r.Begin != nil {
		if err := r.Begin(ctx); err != nil {
			return result, err
		}
	}
	c := model.Conversation{System: system(), Turns: []model.Turn{{Role: model.User, Text: r.ask()}}}
	unfinished := &UnfinishedError{Reason: ErrRounds}
	for round := 1; round <= min(or(g.Options.Rounds, DefaultRounds), maxRounds); round++ {
		budget, needed := or(g.Options.Tokens, DefaultTokens), c.Estimate()
		left := budget - result.Tokens.Total()
		if c.MaxTokens = left - needed; c.MaxTokens < leastReply {
			unfinished.Reason = fmt.Errorf("%w: the next round takes at least %d, and %d of %d are left", ErrBudget, needed+leastReply, max(left, 0), budget)
			break
		}
		reply, err := g.Model.Complete(ctx, c, g.onText(round))
		result.Tokens = result.Tokens.Plus(reply.Tokens)
		result.Text = printable.Short(reply.Text, maxText)
		if err == nil || reply.Tokens.Total() > 0 {
			result.Rounds = append(result.Rounds, Round{Tokens: reply.Tokens})
		}
		if err != nil {
			return result, fmt.Errorf("round %d: %w", round, err)
		}
		draft, problems, err := r.try(ctx, reply, try)
		if draft.Source != "" {
			result.Draft = draft
		}
		if err != nil {
			return result, err
		}
		if problems == nil {
			return result, nil
		}
		result.Rounds[len(result.Rounds)-1] = Round{problems.Stage, problems.Problems, reply.Tokens}
		unfinished.Draft, unfinished.Problems = result.Draft, problems
		// Some servers count a turn without text as none.
		c.Turns = append(c.Turns, model.Turn{Role: model.Assistant, Text: cmp.Or(reply.Text, "(nothing)")}, model.Turn{Role: model.User, Text: complain(problems)})
	}
	return result, unfinished
}

func (r *Request) check() error {
	switch {
	case plain(r.Description) == "":
		return &RequestError{"describe what the extension should do"}
	case len(r.Description) > maxRequestText:
		return &RequestError{fmt.Sprintf("the description has %d bytes; %d are allowed", len(r.Description), maxRequestText)}
	case len(r.Types) > maxTypes:
		return &RequestError{fmt.Sprintf("the types have %d bytes; %d are allowed", len(r.Types), maxTypes)}
	case r.Name != "" && !extension.IsName(r.Name):
		return &RequestError{fmt.Sprintf(`the name %q is not of the form "my-notes", in at most 64 bytes`, printable.Cut(r.Name, 100))}
	default:
		return nil
	}
}

// offer finds existing extensions that fit.
func (g *Generator) offer(ctx context.Context, r Request) ([]Existing, error) {
	if r.New || r.Existing == nil {
		return nil, nil
	}
	found, err := r.Existing(ctx, r.Description)
	if err != nil {
		return nil, fmt.Errorf("look for what exists: %w", err)
	}
	fits := slices.DeleteFunc(slices.Clone(found), func(e Existing) bool { return !(e.Score >= or(g.Options.Threshold, defaultThreshold)) })
	slices.SortStableFunc(fits, func(a, b Existing) int { return cmp.Compare(b.Score, a.Score) })
	return fits[:min(len(fits), maxOffers)], nil
}

// try finds the draft in a reply and tries it. The model does not see errors.
func (r *Request) try(ctx context.Context, reply model.Reply, try func(context.Context, Draft) error) (Draft, *extension.ProblemsError, error) {
	if reply.Cut {
		return Draft{}, problem(StageReply, extension.Problem{
			Text: fmt.Sprintf("the reply was cut off after %d tokens", reply.Tokens.Output), Fix: "less: no prose, fewer comments, simpler code",
		}), nil
	}
	draft, problems := r.draft(reply.Text)
	if problems != nil {
		return draft, problems, nil
	}
	err := try(ctx, draft)
	if err == nil {
		return draft, nil, nil
	}
	if problems = problemsOf(err); problems != nil && len(problems.Problems) > 0 && ctx.Err() == nil {
		return draft, problems, nil
	}
	return draft, nil, err
}

func (g *Generator) onText(round int) func(model.Piece) {
	if g.Options.OnText == nil {
		return nil
	}
	return func(piece model.Piece) {
		if piece.Text != "" {
			g.Options.OnText(round, piece.Text)
		}
	}
}

// or returns a value, or its default if it is not positive.
func or[T int | float64](value, standard T) T {
	if value > 0 {
		return value
	}
	return standard
}
