package main

import (
	"time"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/printable"
)

// These types are what stile ext prints as JSON. Scripts depend on them.

type releaseJSON struct {
	Request int64           `json:"request"`
	Scope   extension.Scope `json:"scope"`
	Name    string          `json:"name"`
	Digest  string          `json:"digest"`
	State   lifecycle.State `json:"state"`
	Author  string          `json:"author"`
	Asked   time.Time       `json:"asked"`
	Decided time.Time       `json:"decided,omitzero"`
	// By is who decided. Policy is the line of the policy that decided.
	By         string `json:"by,omitempty"`
	Policy     string `json:"policy,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Quarantine string `json:"quarantine,omitempty"`
	// Dropped is "component" or "source": what the store no longer has of the version.
	Dropped lifecycle.Dropped `json:"dropped,omitempty"`
}

func releaseOf(r lifecycle.Release) releaseJSON {
	return releaseJSON{r.ID, r.Scope, r.Name, r.Digest, r.State, r.Author, r.Asked.UTC(), r.Decided.UTC(), r.By, r.Line, r.Reason, r.Quarantine, r.Dropped}
}

func releasesOf(all []lifecycle.Release) []releaseJSON {
	list := make([]releaseJSON, len(all))
	for i, r := range all {
		list[i] = releaseOf(r)
	}
	return list
}

type extensionJSON struct {
	Scope       extension.Scope `json:"scope"`
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Source      bool            `json:"source"` // whether there is a source to read
	Description string          `json:"description"`
	Tags        []string        `json:"tags"`
	Active      *releaseJSON    `json:"active"`
	Pending     *releaseJSON    `json:"pending"`
	Tools       []toolStateJSON `json:"tools"`
	Problem     string          `json:"problem,omitempty"`
}

type toolStateJSON struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Calls       int64            `json:"calls"`
	Failures    int64            `json:"failures"`
	P50         float64          `json:"p50Seconds"`
	P95         float64          `json:"p95Seconds"`
	LastUsed    time.Time        `json:"lastUsed,omitzero"`
	LastError   string           `json:"lastError,omitempty"`
	Score       int              `json:"score"`
	ShadowedBy  *extension.Scope `json:"shadowedBy,omitempty"`
}

func extensionOf(e lifecycle.Extension) extensionJSON {
	one := extensionJSON{Scope: e.Scope, Name: e.Name, Version: e.Version, Source: !e.NoSource, Description: e.Description, Tags: append([]string{}, e.Tags...), Tools: []toolStateJSON{}, Problem: e.Problem}
	for from, to := range map[*lifecycle.Release]**releaseJSON{e.Active: &one.Active, e.Pending: &one.Pending} {
		if from != nil {
			r := releaseOf(*from)
			*to = &r
		}
	}
	for _, t := range e.Tools {
		one.Tools = append(one.Tools, toolStateJSON{
			t.Name, t.Description, t.Stats.Calls, t.Stats.Failures, t.Stats.P50.Seconds(), t.Stats.P95.Seconds(), t.Stats.LastUsed.UTC(), t.Stats.LastError,
			t.Stats.Score(), t.ShadowedBy,
		})
	}
	return one
}

// line makes a stranger's text one printable line of at most this many bytes.
func line(text string, most int) string { return cell(printable.Short(text, most)) }
