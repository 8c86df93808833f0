package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/kv"
)

type kvCommand struct {
	Ls  kvLs  `cmd:"" help:"List the buckets."`
	Get kvGet `cmd:"" help:"Print a value."`
	Set kvSet `cmd:"" help:"Store a value, such as a setting of an extension."`
	Rm  kvRm  `cmd:"" help:"Remove buckets with all their values."`
}

// Help implements kong.HelpProvider.
func (*kvCommand) Help() string {
	return `Buckets of kv are kept in STILE_HOME. The binding notes of the extension list has the bucket agent.NAME.list/notes or user.NAME.list/notes, in the scope of that agent or user, and shared.list/notes in the scope shared. With stile run --manifest, it has run.FOLDER-DIGEST.list/notes, where the digest stands for the path of the manifest. --bind names others. Buckets stay when their extension is removed.

Examples:

    stile kv ls
    stile kv set user.ada.greeter/kv config/greeting Hello
    stile kv rm agent.claude.list/notes`
}

type kvLs struct {
	asJSON
}

// Help implements kong.HelpProvider.
func (*kvLs) Help() string {
	return `Examples:

    stile kv ls
    stile kv ls --json`
}

type kvBucket struct {
	Bucket string `json:"bucket"`
	Keys   int64  `json:"keys"`
	Bytes  int64  `json:"bytes"`
}

func bucketTable(all []kv.Kept) string {
	rows := [][]string{{"BUCKET", "KEYS", "SIZE"}}
	for _, b := range all {
		rows = append(rows, []string{line(b.Name, 200), fmt.Sprint(b.Keys), about(b.Bytes)})
	}
	return table("", rows)
}

func bucketsOf(all []kv.Kept) []kvBucket {
	list := make([]kvBucket, len(all))
	for i, b := range all {
		list[i] = kvBucket{b.Name, b.Keys, b.Bytes}
	}
	return list
}

// withBuckets opens the store until use returns.
func withBuckets(ctx context.Context, use func(*kv.Store, []kv.Kept) error) error {
	return useStore(ctx, kv.File, kv.Open, func(store *kv.Store) error {
		all, err := store.Buckets(ctx)
		if err != nil {
			return err
		}
		return use(store, all)
	})
}

// Run implements the command.
func (c *kvLs) Run(ctx context.Context, s *streams) error {
	return withBuckets(ctx, func(_ *kv.Store, all []kv.Kept) error {
		if c.JSON {
			return printJSON(s.out, map[string][]kvBucket{"buckets": bucketsOf(all)})
		}
		_, err := io.WriteString(s.out, bucketTable(all))
		return err
	})
}

type kvGet struct {
	Bucket string `arg:"" help:"Bucket, as stile kv ls prints it."`
	Key    string `arg:"" help:"Key."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*kvGet) Help() string {
	return `Prints the value as it is, without a line end. If the bucket has no such key, the exit code is 1.

Examples:

    stile kv get user.ada.greeter/kv config/greeting
    stile kv get shared.list/notes seen --json`
}

// Run implements the command.
func (c *kvGet) Run(ctx context.Context, s *streams) error {
	return useStore(ctx, kv.File, kv.Open, func(store *kv.Store) error {
		value, err := store.Bucket(c.Bucket).Get(ctx, c.Key)
		switch {
		case err != nil:
			return err
		case value == nil:
			return abi.Errorf(abi.CodeNotFound, "key %q of bucket %q", c.Key, c.Bucket)
		case c.JSON:
			return printJSON(s.out, map[string]string{"value": *value})
		}
		_, err = io.WriteString(s.out, *value)
		return err
	})
}

type kvSet struct {
	Bucket string `arg:"" help:"Bucket, as stile kv ls prints it. A new one is made."`
	Key    string `arg:"" help:"Key."`
	Value  string `arg:"" help:"Text, @FILE to read a file, or - to read stdin."`
}

// Help implements kong.HelpProvider.
func (*kvSet) Help() string {
	return `A value is UTF-8 text of at most 1 MiB. Extensions that have the bucket can read and change it, so keep secrets in stile secret instead.

Examples:

    stile kv set user.ada.greeter/kv config/greeting Hello
    stile kv set user.ada.greeter/kv config/text @text.txt`
}

// Run implements the command.
func (c *kvSet) Run(ctx context.Context, s *streams) error {
	value, err := readInput(c.Value, s.in, 1<<20)
	if err != nil {
		return err
	}
	return useStore(ctx, kv.File, kv.Open, func(store *kv.Store) error { return store.Bucket(c.Bucket).Set(ctx, c.Key, string(value)) })
}

type kvRm struct {
	Bucket []string `arg:"" help:"Buckets, as stile kv ls prints them."`
	Yes    bool     `help:"Do not ask."`
	asJSON
}

// Help implements kong.HelpProvider.
func (*kvRm) Help() string {
	return `The values cannot be restored.

Examples:

    stile kv rm agent.claude.list/notes
    stile kv rm agent.claude.list/notes agent.claude.list/index --yes`
}

// Run implements the command.
func (c *kvRm) Run(ctx context.Context, s *streams) error {
	return withBuckets(ctx, func(store *kv.Store, all []kv.Kept) error {
		var chosen []kv.Kept
		for _, name := range c.Bucket {
			i := slices.IndexFunc(all, func(b kv.Kept) bool { return b.Name == name })
			if i < 0 {
				return abi.Errorf(abi.CodeNotFound, "bucket %q; stile kv ls lists the buckets", name)
			}
			chosen = append(chosen, all[i])
		}
		text := bucketTable(chosen)
		if !c.Yes {
			show := func() (string, error) { return text, nil }
			if err := s.asks(ctx, show, "Remove these for ever?", "use --yes to remove without a question"); err != nil {
				return err
			}
		}
		for _, b := range chosen {
			if err := store.Remove(ctx, b.Name); err != nil {
				return err
			}
		}
		if c.JSON {
			return printJSON(s.out, map[string][]kvBucket{"removed": bucketsOf(chosen)})
		}
		_, err := io.WriteString(s.out, text)
		return err
	})
}
