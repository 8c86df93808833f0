package lifecycle

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// failedDraft is a draft that failed, and why.
type failedDraft struct {
	draft Draft
	why   string
}

// failedDrafts reads the folder failed of a draft, if there is one: its manifest, its source, or that of the repair, and a line of its error.
func failedDrafts(folder string) func(yield func(failedDraft, error) bool) {
	return func(yield func(failedDraft, error) bool) {
		why, err := os.ReadFile(filepath.Join(folder, "failed", "why.txt"))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		manifest, wrong := os.ReadFile(filepath.Join(folder, "failed", "manifest.json"))
		source, lost := os.ReadFile(filepath.Join(folder, "failed", "tool.ts"))
		if errors.Is(lost, fs.ErrNotExist) {
			source, lost = os.ReadFile(filepath.Join(folder, "tool.ts"))
		}
		d := Draft{Scope: own, Author: own.String(), Via: "test", Manifest: manifest, Files: map[string][]byte{"tool.ts": source}}
		yield(failedDraft{d, strings.TrimSpace(string(why))}, errors.Join(err, wrong, lost))
	}
}

// TestDrafts takes drafts that were written from the description of extension_write alone through all stages, as they were written first, and
// calls their tools. A folder failed holds drafts of the same task that failed, before the description said what they lacked.
func TestDrafts(t *testing.T) {
	h := newHome(t)
	h.options.Types = newTypes(t, h.options.Toolchain)
	h.options.Packages = newPackages(t)
	m := h.open()
	folders, err := filepath.Glob("testdata/drafts/*")
	if err != nil || len(folders) != 30 {
		t.Fatal(folders, err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			manifest, err := os.ReadFile(filepath.Join(folder, "manifest.json"))
			if err != nil {
				t.Fatal(err)
			}
			source, err := os.ReadFile(filepath.Join(folder, "tool.ts"))
			if err != nil {
				t.Fatal(err)
			}
			for failed, err := range failedDrafts(folder) {
				if err != nil {
					t.Fatal(err)
				}
				if got := problemsOf(t, m, failed.draft).Error(); !strings.Contains(got, failed.why) {
					t.Errorf("the failed draft: got %s, want %s", got, failed.why)
				}
			}
			d := Draft{Scope: own, Author: own.String(), Via: "test", Manifest: manifest, Files: map[string][]byte{"tool.ts": source}}
			w := write(t, m, d)
			if w.Unchecked != nil || len(w.Tests) == 0 {
				t.Errorf("%v, %d tests", w.Unchecked, len(w.Tests))
			}
			if w.Release.State != Active {
				approve(t, m, w.Release)
			}
			var calls []struct {
				Tool        string
				Input, Want json.RawMessage
			}
			text, err := os.ReadFile(filepath.Join(folder, "calls.json"))
			if err == nil {
				err = json.Unmarshal(text, &calls)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range calls {
				tool := strings.ReplaceAll(w.Release.Name, "-", "_") + "_" + c.Tool
				result, err := m.Call(t.Context(), Call{Viewer: agent, Tool: tool, Input: c.Input})
				var got, want any
				if err != nil || json.Unmarshal(result.Output, &got) != nil || json.Unmarshal(c.Want, &want) != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s(%s): got %s, %v, want %s", tool, c.Input, result.Output, err, c.Want)
				}
			}
		})
	}
}
