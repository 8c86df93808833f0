package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/extension/openapi"
	"github.com/stilehost/stile/internal/errkind"
)

// openapiFlags make extensions out of an OpenAPI document.
type openapiFlags struct {
	OpenAPI    string   `name:"openapi" placeholder:"FILE" help:"OpenAPI document (3.0, 3.1 or Swagger 2.0; JSON or YAML) to make the extension of, instead of a source."`
	Name       string   `placeholder:"NAME" help:"With --openapi: name of the extension. Default: made of the document's title."`
	Server     string   `placeholder:"URL" help:"With --openapi: server of the API. Default: the document's first."`
	Tag        []string `sep:"none" placeholder:"TAG" help:"With --openapi: take only operations with this tag. Can be repeated."`
	Include    []string `sep:"none" placeholder:"GLOB" help:"With --openapi: take only tools whose name matches, or whose path does if GLOB has a slash. Can be repeated."`
	Credential string   `placeholder:"SECRET" complete:"secret" help:"With --openapi: name of the secret that the host adds to each request."`
	As         string   `placeholder:"HOW" help:"With --credential: bearer, basic, header:NAME or query:NAME. Default: what the document says, or else bearer."`
}

// check refuses flags that mean nothing together.
func (f openapiFlags) check(path string) error {
	switch {
	case path == "" && f.OpenAPI == "":
		return usagef("name a source file or a folder, or an OpenAPI document with --openapi")
	case path != "" && f.OpenAPI != "":
		return usagef("name either a source or an OpenAPI document")
	case f.OpenAPI == "" && (f.Name != "" || f.Server != "" || f.Credential != "" || f.As != "" || len(f.Tag)+len(f.Include) > 0):
		return usagef("--name, --server, --tag, --include, --credential and --as need --openapi")
	default:
		return nil
	}
}

// drafts makes extensions of the document, and says what it made.
func (f openapiFlags) drafts(ctx context.Context, s *streams) ([]lifecycle.Draft, error) {
	text, err := readFile(f.OpenAPI, openapi.MaxDocument)
	if err != nil {
		return nil, err
	}
	options := openapi.Options{Name: f.Name, Server: f.Server, Include: f.Include, Tags: f.Tag, Credential: f.Credential, As: f.As}
	made, err := interruptible(ctx, func() (*openapi.Result, error) { return openapi.Generate(text, options) })
	switch {
	case ctx.Err() != nil:
		return nil, err
	case errkind.Is[*openapi.OptionError](err):
		return nil, &usageError{err}
	case err != nil:
		return nil, &usageError{fmt.Errorf("%s: %w", f.OpenAPI, err)}
	}
	var drafts []lifecycle.Draft
	for _, d := range made.Drafts {
		about := ""
		if len(d.Tags) > 0 {
			about = ", tagged " + line(strings.Join(d.Tags, ", "), 200)
		}
		s.say("stile: %s has %s of %s%s", d.Name, counted(d.Tools, "tool"), line(made.Server, 300), about)
		drafts = append(drafts, lifecycle.Draft{Manifest: d.Manifest, Files: d.Files, Entry: openapi.Entry})
	}
	for _, l := range made.LeftOut {
		s.say("stile: left out %s: %s (%s)", counted(l.Count, "operation"), l.Reason, line(l.First, 100))
	}
	if made.Simplified > 0 {
		s.say("stile: the inputs of %s are described in less detail than in the document", counted(made.Simplified, "tool"))
	}
	switch {
	case f.Credential != "":
		s.say("stile: each request carries the secret %s as %s", line(f.Credential, 100), line(made.As, 200))
	case len(made.Auth) > 0:
		s.say("stile: requests carry no credential. The document wants one (%s): stile secret set NAME, then add --credential NAME --as %s",
			line(made.Auth[0].Scheme, 60), line(made.Auth[0].As, 200))
	}
	return drafts, nil
}

// addAll adds several extensions, one after the other. A refused one does not keep the others from being added.
func (c *extAdd) addAll(ctx context.Context, s *streams, e *extensions, drafts []lifecycle.Draft) (err error) {
	for _, d := range drafts {
		d.NoTypes = true // the code is the same for all documents, and the rest is data
		if one := c.add(ctx, s, e, d, "manifest.json"); one != nil {
			err = errors.Join(err, one)
		}
	}
	return err
}
