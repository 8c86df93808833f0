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
	Ls kvLs `cmd:"" help:"List the buckets."`
	Rm kvRm `cmd:"" help:"Remove buckets with all their values."`
}

// Help implements kong.HelpProvider.
func (*kvCommand) Help() string {
	return `Buckets of kv are kept in STILE_HOME. The binding notes of the extension list has the bucket agent.NAME.list/notes or user.NAME.list/notes, in the scope of that agent or user, and list/notes in the scope shared. --bind names others. Buckets stay when their extension is removed.

Examples:

    stile kv ls
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
