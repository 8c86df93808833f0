package jsonform_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stilehost/stile/internal/jsonform"
)

// TestPathsTakeLittle has a long list below long keys: 250 KiB of text, whose paths have 1.5 GB.
func TestPathsTakeLittle(t *testing.T) {
	key := `"` + strings.Repeat("\U000e0001", 80) + `"`
	text := strings.Repeat("{"+key+":", 12) + "[" + strings.Repeat("0,", 100<<10) + `{"a": [1, 2]}]` + strings.Repeat("}", 12)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := jsonform.New("text", []byte(text)).Parse()
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 100 {
		t.Errorf("it took %d MiB", took)
	}
	for range 12 {
		n = n.Value.([]jsonform.Member)[0].Value
	}
	list := n.Value.([]*jsonform.Node)
	last := list[len(list)-1].Value.([]jsonform.Member)[0].Value.Value.([]*jsonform.Node)[1]
	if path := last.Path(); !strings.HasSuffix(path, `"][102400].a[1]`) || !strings.HasPrefix(path, `["\U000e0001`) {
		t.Errorf("the path is %.20s...%s", path, path[len(path)-20:])
	}
}
