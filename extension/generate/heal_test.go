package generate_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/generate"
	"github.com/stilehost/stile/extension/typecheck"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/cache/cachetest"
	"github.com/stilehost/stile/model"
	"github.com/stilehost/stile/model/modeltest"
	"github.com/stilehost/stile/toolchain"
	"github.com/stilehost/stile/toolchain/npm"
)

// pipeline is the stages between a draft and a callable tool.
type pipeline struct {
	tools *toolchain.Toolchain
	types *typecheck.Checker
	// built is the component of the last draft that passed.
	built *host.Component
}

func newPipeline(t *testing.T) *pipeline {
	t.Helper()
	cacheDir, keyDir := cachetest.Dirs(t)
	h, err := host.New(t.Context(), host.Options{Instances: 4, CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	p := &pipeline{}
	p.tools, err = toolchain.New(t.Context(), h, toolchain.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	packages, err := npm.New(npm.Options{CacheDir: cacheDir, KeyDir: keyDir})
	if err != nil {
		t.Fatal(err)
	}
	p.types, err = typecheck.New(typecheck.Options{
		Toolchain: func(context.Context) (*toolchain.Toolchain, error) { return p.tools, nil }, Packages: packages, CacheDir: cacheDir, KeyDir: keyDir,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := errors.Join(p.types.Close(), packages.Close(), p.tools.Close(), h.Close())
		if p.built != nil {
			err = errors.Join(err, p.built.Close())
		}
		if err != nil {
			t.Error(err)
		}
	})
	return p
}

// try parses, builds, compares tools, and checks types.
func (p *pipeline) try(ctx context.Context, d generate.Draft) error {
	m, err := extension.Parse(d.Manifest)
	if err != nil {
		return fmt.Errorf("parse: %w", err)
	}
	c, err := p.tools.Build(ctx, toolchain.Source{
		FS: fstest.MapFS{d.File: {Data: []byte(d.Source)}}, Entry: d.File, Bindings: extension.Known(extension.Merge(m.Bindings, extension.Defaults(capabilities.Builtin))),
	})
	if err != nil {
		return fmt.Errorf("build: %w", err)
	}
	defined, err := c.Tools(ctx)
	if err == nil {
		var names []string
		for _, tool := range defined {
			names = append(names, tool.Name)
		}
		err = m.CheckTools(names)
	}
	if err == nil {
		err = p.types.Check(ctx, typecheck.Request{
			Files: map[string][]byte{d.File: []byte(d.Source)}, Entry: d.File, Bindings: extension.Known(extension.Merge(m.Bindings, extension.Defaults(capabilities.Builtin))),
		})
	}
	if err != nil {
		return errors.Join(err, c.Close())
	}
	p.built = c
	return nil
}

// answer formats a manifest and a source in the form that a model is asked for.
func answer(manifest, source string) string {
	return "```json\n" + manifest + "\n```\n\n```ts\n" + source + "```\n"
}

const (
	manifest = `{"name": "reverse", "version": "0.1.0", "description": "Reverses text", "tools": ["reverse"]}`
	source   = `import { extension } from "stile";
export default extension({
  tools: {
    reverse: {
      description: "Reverse a text",
      input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
      run: ({ text }) => [...text].reverse().join(""),
    },
  },
});
`
)

// mistakes are wrong answers of models, with the stage that detects each and the error that the model must receive.
var mistakes = []struct {
	name, reply string
	stage       extension.Stage
	told        []string
}{
	{"prose", "I would write a tool that imports \"stile\" and reverses the text. Shall I?", generate.StageReply, []string{"there is no code in the reply"}},
	{"a diff", "```diff\n@@ -1 +1 @@\n-a\n+b\n```", generate.StageReply, []string{"the reply has changes"}},
	{"a wrong manifest", answer(`{"name": "Reverse It", "version": "0.1.0", "description": "Reverses text", "tools": ["reverse"]}`, source), extension.StageValidate, []string{`"manifest.json" line 1, column 10`, "Reverse It"}},
	{"a wrong name", answer(strings.ReplaceAll(manifest, `["reverse"]`, `["reverse_text"]`), source), extension.StageImage, []string{"reverse_text", "is in the manifest but not in the code"}},
	{"a syntax error", answer(manifest, strings.Replace(source, "run: (", "run (", 1)), extension.StageBundle, []string{`"tool.ts" line 7`, "source:\n| run ({ text })"}},
	{"a wrong shape", answer(manifest, strings.Replace(source, `input: {`, `input: "text" && "string", inputs: {`, 1)), extension.StageBundle, []string{"reverse"}},
	{"a type error", answer(manifest, strings.Replace(source, "[...text].reverse()", "text.reverse()", 1)), extension.StageTypes, []string{`"tool.ts" line 7, column 31`, "Property 'reverse' does not exist on type 'string'. (TS2339)", "| run: ({ text }) => text.reverse()"}},
	{"a forbidden import", answer(manifest, `import * as net from "net";`+"\n"+strings.Replace(source, "[...text]", "[...text + net.connect(80)]", 1)), extension.StageBundle, []string{`"tool.ts" line 1`, "net"}},
	{"a throw", answer(manifest, "const home = process.env.HOME.length;\n"+source), extension.StageBundle, []string{"top-level code threw", "of undefined"}},
	{"an endless loop", answer(manifest, "let i = 1;\nwhile (i) i++;\n"+source), extension.StageImage, []string{"limit reached: cpu", "no work at the top level"}},
}

// TestHeal has models make all mistakes in turn, and then none.
func TestHeal(t *testing.T) {
	for _, p := range modeltest.Protocols {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			mistakes := mistakes
			if p.Name != "openai" {
				mistakes = mistakes[:4] // the loop alone takes 5 s
			}
			script := []http.HandlerFunc{}
			for _, m := range mistakes {
				script = append(script, p.Reply(m.reply))
			}
			s := modeltest.Serve(t, append(script, p.Reply("Now it works:\n\n"+answer(manifest, source)))...)
			pipe := newPipeline(t)
			var streamed strings.Builder
			g := generate.Generator{Model: p.Model(t, s, model.Options{}), Options: generate.Options{
				Rounds: len(mistakes) + 1, OnText: func(round int, piece string) { fmt.Fprintf(&streamed, "%d:%s", round, piece) },
			}}
			got, err := g.Generate(t.Context(), generate.Request{Description: "Reverse a text"}, pipe.try)
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Draft.Manifest) != manifest || got.Draft.Source != source || got.Draft.File != "tool.ts" {
				t.Errorf("draft is %+v", got.Draft)
			}
			if n := len(mistakes) + 1; len(got.Rounds) != n || got.Tokens != (model.Tokens{Input: 1200 * n, Output: 34 * n, Cached: 200 * n}) {
				t.Errorf("%d rounds, %+v", len(got.Rounds), got.Tokens)
			}
			if !strings.HasPrefix(got.Text, "Now it works") || !strings.Contains(streamed.String(), "1:I would write") || !strings.Contains(streamed.String(), fmt.Sprint(len(mistakes)+1, ":")) {
				t.Errorf("text is %q", got.Text)
			}
			for i, m := range mistakes {
				if got.Rounds[i].Stage != m.stage || len(got.Rounds[i].Problems) == 0 {
					t.Errorf("%s: round is %+v", m.name, got.Rounds[i])
				}
				said := s.Asked()[i+1].Said()
				if turns := said[1:]; len(turns) != 2*i+3 || turns[2*i+1] != m.reply {
					t.Fatalf("%s: then there are %d turns", m.name, len(turns))
				}
				told := said[len(said)-1]
				for _, want := range append(m.told, fmt.Sprintf("the stage %q", m.stage)) {
					if !strings.Contains(told, want) {
						t.Errorf("%s: the model is not told %q, but\n%s", m.name, want, told)
					}
				}
			}
			result, err := pipe.built.Do(t.Context(), host.Request{Tool: "reverse", Input: []byte(`{"text":"stile"}`)})
			if err != nil || string(result.Output) != `"elits"` {
				t.Errorf("the tool says %s, %v", result.Output, err)
			}
		})
	}
}
