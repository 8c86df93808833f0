package kv

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/jsonform"
)

// File is where a site keeps its buckets.
const File = "kv.db"

// Kind is small durable values.
var Kind = &capability.Kind{
	Name: "kv", Interface: Interface, Permission: "kv", Example: "true",
	Parse: parse, ParsePermission: parse, ParseSpec: parseSpec, Learn: newRecorded,
	SpecForm: "kv:STORE", SpecMeans: "values under keys, kept in STILE_HOME",
}

func parse(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
	return capability.True(r, n, Rights{})
}

func parseSpec(s capability.Spec) (capability.Grant, error) {
	const example = "kv:NAME"
	switch {
	case !capability.IsStoreName(s.Argument):
		return nil, &capability.MistakeError{Text: fmt.Sprintf("%s cannot name a bucket, %s can", jsonform.Quote(s.Argument), capability.StoreNames), Fix: example}
	case s.Options != "":
		return nil, &capability.MistakeError{Text: fmt.Sprintf("a bucket has no option %s", jsonform.Quote(s.Options)), Fix: example}
	}
	return Rights{Store: s.Argument}, nil
}

// Rights are rights to a bucket.
type Rights struct {
	// Store names the bucket. It is empty in a manifest, where an extension asks for its own.
	Store string
}

// Kind implements [capability.Grant].
func (Rights) Kind() *capability.Kind { return Kind }

// Interface implements [capability.Grant].
func (Rights) Interface() string { return Interface }

// Document implements [capability.Grant].
func (Rights) Document() any { return true }

// Describe implements [capability.Grant].
func (Rights) Describe() []string { return []string{"may keep small values from call to call"} }

// Authority implements [capability.Grant].
func (Rights) Authority() []string { return []string{"kv"} }

// Covers implements [capability.Grant].
func (g Rights) Covers(asked capability.Grant) bool { return g == asked }

// Own implements [capability.Owner]. No binding of a command line can name such a bucket.
func (Rights) Own(store, binding string) capability.Grant {
	return Rights{Store: store + "/" + binding}
}

// Reach implements [capability.Reacher].
func (Rights) Reach() (changes, open bool) { return true, false }

// Open implements [capability.Opener].
func (g Rights) Open(ctx context.Context, s *capability.Site) (abi.Capability, error) {
	store, err := capability.Store(ctx, s, File, func(ctx context.Context, path string) (*Store, error) { return Open(ctx, path, Options{Room: s.Room}) })
	if err != nil {
		return nil, err
	}
	return store.Bucket(g.Store), nil
}

// Double implements [double.Doubler] with a bucket that has the values of the test.
func (g Rights) Double(ctx context.Context, t *double.Test, answers json.RawMessage) (abi.Capability, error) {
	values, err := double.Members[string](t, answers, `{"key": "value"}`)
	if err != nil {
		return nil, err
	}
	store, err := double.Store(t.Stores, File, func(path string) (*Store, error) { return Open(ctx, path, Options{BucketBytes: double.MaxKept}) })
	if err != nil {
		return nil, err
	}
	bucket := store.Bucket(g.Store)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := t.Kept(key, bucket.Set(ctx, key, values[key])); err != nil {
			return nil, err
		}
	}
	return bucket, nil
}
